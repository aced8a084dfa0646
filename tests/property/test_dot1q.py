"""Exports of generated fabrics: files are read back as planned, and verdicts are correct."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st

from knotless.base.errors import PlanError
from knotless.forwarding.dot1q.files import files_of, read_files
from knotless.forwarding.dot1q.from_plan import export
from knotless.forwarding.dot1q.model import L2Fabric
from knotless.forwarding.dot1q.state import state_of_dot1q
from knotless.forwarding.dot1q.target import targets
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.routing.plan import Plan, make_plan
from knotless.topologies import Fabric
from knotless.verification.check import Verdict, check, verdict_of
from tests.support.dot1q_exports import verdicts_of
from tests.support.dumb_switch import flows_of
from tests.support.fabric_strategies import graphs, grids

FABRICS = st.one_of(graphs(), grids())
ENGINES = ["updown", "prefix", "lturn", "rturn", "lash --vcs 1", "dl --vcs 1", "minimal"]


def planned(fabric: Fabric, engine: str, tagging: str) -> tuple[Plan, L2Fabric]:
    """A plan that ordinary switches can implement, and its export."""
    name, *one_vc = engine.split(" --vcs ")
    vcs = 1 if one_vc else None
    try:
        plan = make_plan(fabric, name, vcs=vcs, tagging=tagging, vlans="tree")
        return plan, export(plan)
    except PlanError:
        assume(False)
        raise


@given(FABRICS, st.sampled_from(ENGINES), st.sampled_from(["switch", "host"]))
def test_compiled_rules_read_back_equal_the_plan_and_deliver(
    fabric: Fabric, engine: str, tagging: str
) -> None:
    plan, meant = planned(fabric, engine, tagging)
    files = files_of(meant)
    read = [read_files(files, kind) for kind in targets()]
    assert len(read) > 1
    assert read == [meant] * len(read)
    for verdict in verdicts_of(meant).values():
        assert verdict.failed == 0
        assert verdict.ok or engine == "minimal"
    # Unicasts use the plan's paths; a broadcast may use other links of its VLAN's tree.
    difference = state_of_dot1q(meant, meant.tags).difference(state_of_plan(plan))
    assert difference == "" or " to all," in difference


@given(
    FABRICS,
    st.sampled_from(["prefix", "updown", "minimal"]),
    st.sampled_from(["switch", "host"]),
    st.data(),
)
def test_altered_tables_are_judged_as_by_the_check_of_rules(
    fabric: Fabric, engine: str, tagging: str, data: st.DataObject
) -> None:
    """The tables of each switch written as OpenFlow rules, and those rules followed."""
    _, meant = planned(fabric, engine, tagging)
    files = files_of(meant)
    name = data.draw(st.sampled_from([switch.name for switch in fabric.switches]))
    values = json.loads(files[f"{name}.json"])
    ports = values["ports"]
    if values["macs"] and data.draw(st.booleans()):
        entry = data.draw(st.sampled_from(values["macs"]))
        entry["port"] = data.draw(st.sampled_from(ports))["port"]
    elif values["macs"] and data.draw(st.booleans()):
        values["macs"].remove(data.draw(st.sampled_from(values["macs"])))
    elif ports:
        port = data.draw(st.sampled_from(ports))
        port["tagged"] = sorted({*values["vlans"]} - {*port["untagged"]} - {*port["tagged"]})
    files[f"{name}.json"] = json.dumps(values)
    read = read_files(files)
    with tempfile.TemporaryDirectory() as folder:
        rules = {}
        for switch in fabric.switches:
            file = Path(folder) / f"{switch.name}.json"
            file.write_text(files[file.name])
            rules[switch.name] = parse(flows_of(file), "")
    for tags in (read.tags, None):
        of_tables = verdict_of(state_of_dot1q(read, tags), "pause")
        judged = check(fabric, rules, flow_control="pause", tags=tags)
        assert figures(of_tables) == figures(judged)


def figures(verdict: Verdict) -> tuple[float, ...]:
    return (
        verdict.undelivered,
        verdict.broadcasts_undelivered,
        verdict.max_channel_load,
        verdict.mean_switches,
        verdict.max_switches,
        verdict.acyclic,
    )
