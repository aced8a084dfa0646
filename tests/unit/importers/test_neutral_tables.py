"""Tables of a fabric in a format of our own: the examples of the page, and our own plans."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.base.flow_control import AUTO
from knotless.cli.main import main
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.state import ForwardingState
from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.check import verdict_of
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.readable_fabrics import neutral_ring

PAGE = Path(__file__).parents[3] / "docs" / "fabric-tables.md"
EXAMPLES = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.S)]


def judged(tables: object, folder: Path) -> ImportedVerdict:
    (folder / "tables.json").write_text(json.dumps(tables))
    return verdict_of_imported(read_paths([folder / "tables.json"]))


def test_the_examples_of_the_page(tmp_path: Path) -> None:
    """Both are the same ring; without the change of virtual channels, it can deadlock."""
    by_tables, by_paths = (judged(tables, tmp_path) for tables in EXAMPLES)
    for verdict in (by_tables, by_paths):
        assert (verdict.acyclic, verdict.pairs, verdict.undelivered) == (True, 6, 0)
        assert (verdict.switches, verdict.hosts, verdict.missing) == (3, 3, [])
    cycle = ["s1:right/0", "s2:right/0", "s3:right/0"]
    verdict = judged({**EXAMPLES[0], "virtual_channels": []}, tmp_path)
    assert (verdict.acyclic, verdict.cycle) == (False, cycle)
    text = json.dumps(EXAMPLES[1]).replace("s1:right/1", "s1:right/0")
    verdict = judged(json.loads(text), tmp_path)
    assert (verdict.acyclic, verdict.cycle) == (False, cycle)
    done = CliRunner().invoke(main, ["check", str(tmp_path / "tables.json")])
    assert done.exit_code == 1
    assert "h3 by path" in done.output or "h1 by path" in done.output


def paths_of(state: ForwardingState) -> list[dict[str, Any]]:
    """Return the path of each pair of hosts, with the priority of each hop."""
    fabric, channels, paths = state.fabric, state.channels, []
    for source in fabric.hosts:
        for number, target in enumerate(fabric.hosts):
            if source is target:
                continue
            hops = state.trace_number(source.name, number).hops
            between = [hop for hop in hops if hop.channel < len(channels)]
            named = [channels.name(hop.channel, hop.priority) for hop in between]
            paths.append({"from": source.name, "to": target.name, "hops": named})
    return paths


@pytest.mark.parametrize(
    ("spec", "engine"),
    [
        ("ring,5", "minimal"),
        ("torus,4,4", "minimal"),
        ("torus,4,4", "dor"),
        ("torus,3,3,hosts=2", "dfsssp"),
        ("mesh,3,3", "sbp"),
        ("irregular-a", "lash"),
        ("irregular-b", "updown"),
        ("lsft,2", "lsft"),
        ("random,12,degree=3,hosts=2,seed=3", "dl"),
        ("random,12,degree=3,hosts=2,seed=4", "minimal"),
    ],
)
def test_the_paths_of_plans_have_their_verdicts(spec: str, engine: str, tmp_path: Path) -> None:
    plan = make_plan(load(spec), engine)
    state = state_of_plan(plan)
    fabric = plan.fabric
    tables = {
        "knotless-tables": 1,
        "switches": [switch.name for switch in fabric.switches],
        "cables": [[f"{x.a}:{x.a_port}", f"{x.b}:{x.b_port}"] for x in fabric.links],
        "hosts": {host.name: f"{host.switch}:{host.port}" for host in fabric.hosts},
        "paths": paths_of(state),
    }
    verdict = judged(tables, tmp_path)
    expected = verdict_of(state, "pfc" if plan.vcs > 1 else AUTO)
    assert verdict.acyclic is expected.acyclic
    assert (verdict.pairs, verdict.undelivered) == (expected.pairs, 0)
    assert len(verdict.cycle) == len(expected.cycle)
    assert verdict.max_channel_load == expected.max_channel_load


def change(tables: Any, *keys: Any, to: Any) -> Any:
    changed = json.loads(json.dumps(tables))
    inner = changed
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = to
    return changed


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        (change(EXAMPLES[0], "cables", 0, 1, to="s9:x"), "'s9:x' is not SWITCH:PORT of one of"),
        (change(EXAMPLES[0], "next_hops", "s1", "h2", to=["up"]), "'s1:up' has neither a cable"),
        (
            change(EXAMPLES[0], "next_hops", "s1", "h9", to=["right"]),
            "'h9' is not one of the hosts",
        ),
        (change(EXAMPLES[0], "next_hops", "s9", to={}), "'s9' is not one of the switches"),
        (change(EXAMPLES[0], "flow_control", to="magic"), "flow_control: "),
        (change(EXAMPLES[0], "colour", to="red"), "colour: Extra inputs are not permitted"),
        (change(EXAMPLES[0], "virtual_channels", 0, "to", to=16), "less than 16"),
        (change(EXAMPLES[0], "paths", to=[]), "either next_hops or paths is needed"),
        (change(EXAMPLES[1], "paths", 0, "hops", to=["s1:right/x"]), "does not end with a virtual"),
        (change(EXAMPLES[1], "paths", 0, "hops", to=["s2:right/0"]), "does not lead on"),
        (change(EXAMPLES[1], "paths", 0, "hops", to=[]), "ends at s1, without its host"),
        (
            change(EXAMPLES[1], "paths", 0, "hops", to=[f"s{n}:right/0" for n in (1, 2, 3, 1)]),
            "passes s1 twice",
        ),
    ],
)
def test_what_is_wrong_is_one_line(tables: object, says: str, tmp_path: Path) -> None:
    (tmp_path / "tables.json").write_text(json.dumps(tables))
    done = CliRunner(mix_stderr=False).invoke(main, ["check", str(tmp_path / "tables.json")])
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert says in done.stderr


def test_what_is_missing_makes_the_verdict_unknown(tmp_path: Path) -> None:
    tables = change(EXAMPLES[0], "next_hops", "s1", to={"h2": ["right"]})
    verdict = judged(tables, tmp_path)
    assert (verdict.acyclic, verdict.missing) == (
        None,
        ["what s1 does with some destinations"],
    )
    del tables["next_hops"]["s2"]
    assert "the next hops of s2" in judged(tables, tmp_path).missing


def test_next_hops_that_are_any_one(tmp_path: Path) -> None:
    """With both directions of the ring, packets may go round it."""
    tables = json.loads((neutral_ring(tmp_path) / "tables.json").read_text())
    tables["next_hops"]["s0"]["h2"] = ["right", "left"]
    verdict = judged(tables, tmp_path)
    assert verdict.acyclic is False
    two = {"failures": "--failures=1", "react": "--react=static"}
    done = CliRunner().invoke(main, ["check", str(tmp_path / "tables.json"), *two.values()])
    assert done.exit_code == 1
