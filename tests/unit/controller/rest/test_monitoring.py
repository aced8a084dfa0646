"""Dashboard and alert rules ask for metrics and labels that the controller exports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.rest.metrics import Metrics
from knotless.controller.status import Status
from knotless.controller.updates.fabric_state import FabricState
from knotless.topologies import load
from tests.support import REPOSITORY

FOLDER = REPOSITORY / "controller" / "monitoring"
OF_PROMETHEUS = {"job", "instance", "le"}


def exported() -> dict[str, set[str]]:
    """Return the labels of every metric that the controller can export, by name."""
    status = Status(FabricState(DesiredState.compute(Config(fabric="ring,4"), load("ring,4"))))
    status.see_links({"deadlock": None, "stretch_now": 1.0})
    metrics = Metrics(status, lambda: 0.0)
    metrics.changes.labels("add").inc()
    metrics.reloads.labels("refused").inc()
    metrics.route_change_s.labels("1").observe(0.1)
    body = metrics.response().body
    labels: dict[str, set[str]] = {"up": set()}
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


def expressions() -> Iterator[str]:
    """Yield the expressions of all panels, variables and alert rules."""
    board = json.loads((FOLDER / "grafana-controller.json").read_text())
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (
        variable["query"] for variable in board["templating"]["list"] if variable["type"] == "query"
    )
    for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_what_is_asked_for_is_exported(expression: str) -> None:
    metrics = exported()
    names = re.findall(r"\b(knotless_\w+|up)\b", expression)
    assert names
    assert set(names) <= metrics.keys()
    labels = {label for name in names for label in metrics[name]} | OF_PROMETHEUS
    selected = re.findall(r"[{,]\s*(\w+)\s*(?:=~|=|!=)", expression)
    grouped = [
        name for clause in re.findall(r"\bby \(([^)]*)\)", expression) for name in clause.split(",")
    ]
    assert {name.strip() for name in [*selected, *grouped]} <= labels
    assert expression.count("(") == expression.count(")")
    assert expression.count("{") == expression.count("}")


def test_every_metric_is_on_the_dashboard() -> None:
    shown = (FOLDER / "grafana-controller.json").read_text()
    ours = {re.sub(r"_(bucket|sum|count|created)$", "", name) for name in exported()} - {"up"}
    assert {name for name in ours if name not in shown} == set()


def test_panels_do_not_overlap_and_every_alert_is_explained() -> None:
    board = json.loads((FOLDER / "grafana-controller.json").read_text())
    cells = [
        (x, y)
        for area in (panel["gridPos"] for panel in board["panels"])
        for x in range(area["x"], area["x"] + area["w"])
        for y in range(area["y"], area["y"] + area["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"]["summary"]
            assert rule["labels"]["severity"] in {"warning", "critical"}
