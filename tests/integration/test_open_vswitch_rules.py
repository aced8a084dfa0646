"""Open vSwitch accepts our rule files, dumps the same rules, and forwards as the check predicts.

It runs on dummy devices, see :mod:`tests.support.dummy_fabric`.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.forwarding.openflow.rules import FabricRules
from knotless.routing.plan import make_plan
from knotless.topologies import Fabric, load
from knotless.topologies.numbering import mac_value
from tests.support.dummy_fabric import DummyFabric
from tests.support.one_switch import Frame, Pipeline

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("torus,4,4,hosts=2", "dor", {}),
    ("ring,5,hosts=3", "minimal", {}),
    ("mtree,3,3", "updown", {}),
    ("ring,5", "updown", {"vcs": 2}),
    ("flat,4", "updown", {}),
]

pytestmark = pytest.mark.skipif(shutil.which("ovs-vswitchd") is None, reason="needs Open vSwitch")


def _follow(fabric: Fabric, rules: FabricRules, switch: str, port: int, frame: Frame) -> list[str]:
    """Return the hosts that get the frame according to our own interpreter."""
    pipelines = {name: Pipeline(name, of_switch) for name, of_switch in rules.items()}
    hosts = []
    going = [(switch, port, frame)]
    while going:
        switch, port, frame = going.pop()
        for out_port, copy in pipelines[switch].outputs(port, frame):
            if out_port in fabric.neighbours[switch]:
                going.append((*fabric.neighbours[switch][out_port], copy))
            else:
                assert copy.tags == ()
                hosts.append(fabric.hosts_at[switch][out_port].name)
    return sorted(hosts)


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def running(request: pytest.FixtureRequest) -> Iterator[DummyFabric]:
    spec, engine, options = request.param
    plan = make_plan(load(spec), engine, **options)
    fabric = DummyFabric(plan.fabric, compile_rules(plan))
    try:
        fabric.start()
        yield fabric
    finally:
        fabric.stop()


@pytest.mark.smoke
@pytest.mark.thin(2)
def test_open_vswitch_agrees(running: DummyFabric) -> None:
    fabric, rules = running.fabric, running.rules
    for name, of_switch in rules.items():
        flows, groups = running.ofctl("dump-flows", name), running.ofctl("dump-groups", name)
        assert parse(flows, groups) == of_switch
    rng = random.Random(1)  # noqa: S311 - no secret
    macs = [mac_value(host.mac) for host in fabric.hosts]
    strange = [0xFFFFFFFFFFFF, 0x01005E000001, 0x0180C2000001, 0x020000000199, 0x020000FFFF01]
    delivered = 0
    for _ in range(40):
        source = rng.choice(fabric.hosts)
        frame = Frame(
            rng.choice(macs + strange),
            mac_value(source.mac) if rng.random() < 0.9 else rng.choice(macs),
            rng.choice([0x0800, 0x0806]),
            () if rng.random() < 0.9 else (2,),
        )
        here = (source.switch, source.port, frame)
        assert running.trace(*here) == _follow(fabric, rules, *here), here
        delivered += bool(running.trace(*here))
    assert delivered >= 10
    for _ in range(40 if fabric.links else 0):
        link = rng.choice(fabric.links)
        tags = (rng.randrange(8) << 13 | rng.choice([1, 2, 2, 2, 3, 4]),)
        frame = Frame(rng.choice(macs + strange), rng.choice(macs), 0x0800, tags)
        here = (link.b, link.b_port, frame)
        assert running.trace(*here) == _follow(fabric, rules, *here), here
