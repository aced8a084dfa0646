"""Changes, draining and their end on a running fabric under traffic: nothing is lost."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.request import urlopen

import pytest

from knotless.emulation.network import EmulatedFabric
from knotless.routing.request import PlanRequest
from tests.support.fabric_fixtures import Knotless, Start
from tests.support.pings import every_echo_arrives
from tests.support.waiting import HANG_S, until

PINGS = (("h1", "h3"), ("h2", "h4"), ("h4", "h1"))


@pytest.fixture
def fabric(start: Start) -> EmulatedFabric:
    return start("ring,4", PlanRequest.from_options(engine="updown", flow_control="pfc"))


@contextmanager
def pinging(fabric: EmulatedFabric) -> Iterator[None]:
    """Ping all the time; no echo may be lost."""

    def start(a: str, b: str, output: IO[str]) -> subprocess.Popen[str]:
        command = ["ping", "-i", "0.02", "-W", "5", fabric.host(b).IP()]
        popen = fabric.host(a).popen
        client: subprocess.Popen[str] = popen(command, text=True, stdout=output, stderr=output)
        return client

    with every_echo_arrives([partial(start, a, b) for a, b in PINGS]):
        yield


def metric(fabric: EmulatedFabric, name: str) -> float:
    with urlopen(f"http://127.0.0.1:{fabric.rest_port}/metrics", timeout=HANG_S) as answer:
        lines = answer.read().decode().splitlines()
    (value,) = [float(line.split()[1]) for line in lines if line.split()[0] == name]
    return value


def changes(fabric: EmulatedFabric) -> list[dict[str, Any]]:
    with urlopen(f"http://127.0.0.1:{fabric.rest_port}/changes", timeout=HANG_S) as answer:
        entries: list[dict[str, Any]] = json.load(answer)["changes"]
    return entries


def test_changes_and_drains_lose_no_frame(
    fabric: EmulatedFabric, knotless: Knotless, tmp_path: Path
) -> None:
    name = ("--name", fabric.name)

    def run(*words: str) -> dict[str, Any]:
        done = knotless(*words, *name, "--json")
        assert done.returncode == 0, done.stderr
        output: dict[str, Any] = json.loads(done.stdout)
        return output

    with pinging(fabric):
        shown = run("change", "--root", "s3", "--dry-run", "--out", str(tmp_path / "steps"))
        assert (shown["performed"], shown["tier"]) == (False, 2)
        changed = run("change", "--root", "s3")
        assert (changed["performed"], changed["steps"]) == (True, shown["steps"])
        ages = [of["certificate"].pop("read_age_s") for of in (shown, changed)]
        assert changed["certificate"] == shown["certificate"]
        assert [{*of} for of in ages] == [{*fabric.fabric.switch_index}] * 2
        assert knotless("probe", *name).returncode == 0
        assert run("drain", "s2")["drained"] == ["s2"]
        # Only the link that s2 keeps carries frames to it, and none passes it.
        assert knotless("probe", *name).returncode == 0
        refused = knotless("drain", "s1-s4", *name)
        assert refused.returncode == 2
        assert refused.stderr.count("\n") == 1
        assert "some hosts could not reach each other" in refused.stderr
        fabric.restart_controller()
        status = fabric.controller_status()
        assert status["drained"] == status["routes"]["drained"] == ["s2"]
        assert status["request"]["root"] == "s3"
        assert "drained: s2" in knotless("status", *name).stdout
        assert run("undrain", "s2")["drained"] == []
        run("change")
        assert knotless("check", "--live", *name).returncode == 0
    for step in range(len(shown["steps"]) + 1):
        checked = knotless("check", str(tmp_path / "steps" / str(step)), "--flow-control", "pfc")
        assert checked.returncode == 0, checked.stdout
    until("all certificates", lambda: all(entry["certificate"] for entry in changes(fabric)))
    last = changes(fabric)[-1]
    assert last["certificate"]["proven"]
    assert [set(entry) <= set(fabric.fabric.switch_index) for entry in last["confirmed"]]
    assert fabric.controller_status()["problems"] == []


def test_what_a_change_drops_is_said_before_and_measured_after(
    start: Start, knotless: Knotless
) -> None:
    """On a ring of six, some pairs can move in no stage under PAUSE."""
    fabric = start("ring,6", PlanRequest.from_options(engine="updown", flow_control="pause"))
    name = ("--name", fabric.name)

    def run(*words: str) -> dict[str, Any]:
        done = knotless("change", "--root", "s4", *words, *name, "--json")
        assert done.returncode == 0, done.stderr
        output: dict[str, Any] = json.loads(done.stdout)
        return output

    said = run("--dry-run")
    assert (said["performed"], said["tier"]) == (False, 3)
    assert said["dropped_pairs"] == len(said["dropped"]) > 0
    assert said["estimated_drop_s"] > 0
    assert changes(fabric) == []
    performed = run()
    assert performed["performed"]
    assert performed["dropped"] == said["dropped"]
    until("the change", lambda: len(changes(fabric)) == 1)
    until("its certificate", lambda: changes(fabric)[0]["certificate"])
    (measured,) = changes(fabric)
    assert measured["dropped_pairs"] == said["dropped_pairs"]
    assert measured["certificate"]["dropped"] == said["dropped"]
    assert 0 < measured["dropped_s"] < measured["seconds"]
    most = max(step["dropped_pairs"] for step in said["steps"])
    assert metric(fabric, "knotless_change_dropped_pairs_total") == most
    assert metric(fabric, "knotless_change_dropping_seconds_total") > 0
    assert metric(fabric, "knotless_dropping_pairs") == 0
    assert fabric.controller_status()["routes"]["dropping"] == 0
    assert knotless("probe", *name).returncode == 0


def test_a_refused_change_changes_nothing(fabric: EmulatedFabric, knotless: Knotless) -> None:
    def routes() -> dict[str, Any]:
        status: dict[str, Any] = fabric.controller_status()["routes"]
        for key in ("planned_ahead", "settling"):
            del status[key]
        return status

    before = routes()
    for words in (("--engine", "magic"), ("--flow-control", "pause"), ("--tagging", "host")):
        done = knotless("change", *words, "--name", fabric.name)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert routes() == before
