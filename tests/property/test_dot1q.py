"""Exports of generated fabrics: what is read back is what was meant, and what it does is found."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st

from forwarding.dot1q.folder import files_of
from forwarding.dot1q.from_plan import export
from forwarding.dot1q.model import L2Fabric
from forwarding.dot1q.reader import KINDS, read_files
from forwarding.dot1q.verify import verify
from routing.ofctl import parse
from routing.plan import make_plan
from tests.dumb_switch import flows_of
from tests.property.fabrics import graphs, grids
from topologies import Fabric
from topologies.errors import PlanError
from verification.check import check

FABRICS = st.one_of(graphs(), grids())
ENGINES = ["updown", "prefix", "lturn", "rturn", "lash --vcs 1", "dl --vcs 1", "minimal"]


def exported(fabric: Fabric, engine: str, tagging: str) -> L2Fabric:
    name, *one_vc = engine.split(" --vcs ")
    vcs = 1 if one_vc else None
    try:
        return export(make_plan(fabric, name, vcs=vcs, tagging=tagging, vlans="tree"))
    except PlanError:
        assume(False)
        raise


@given(FABRICS, st.sampled_from(ENGINES), st.sampled_from(["switch", "host"]))
def test_what_is_read_back_is_what_was_meant_and_delivers(
    fabric: Fabric, engine: str, tagging: str
) -> None:
    meant = exported(fabric, engine, tagging)
    files = files_of(meant)
    assert [read_files(files, kind) for kind in KINDS] == [meant, meant]
    verdict = verify(meant)
    assert verdict.delivers
    assert verdict.good or engine == "minimal"


@given(FABRICS, st.sampled_from(["prefix", "updown", "minimal"]), st.data())
def test_altered_tables_are_judged_as_by_the_check_of_rules(
    fabric: Fabric, engine: str, data: st.DataObject
) -> None:
    """The tables of each switch written as OpenFlow rules, and those rules walked."""
    files = files_of(exported(fabric, engine, "switch"))
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
    found = verify(read_files(files))
    with tempfile.TemporaryDirectory() as folder:
        rules = {}
        for switch in fabric.switches:
            file = Path(folder) / f"{switch.name}.json"
            file.write_text(files[file.name])
            rules[switch.name] = parse(flows_of(file), "")
    verdict = check(fabric, rules, flow_control="pause")
    assert (found.undelivered, found.broadcasts_undelivered) == (
        verdict.undelivered,
        verdict.broadcasts_undelivered,
    )
    assert bool(found.cycle) != verdict.acyclic
