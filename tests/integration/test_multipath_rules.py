"""Open vSwitch accepts the rules of plans with multipath, and hashes as we say.

It runs on dummy devices, see :mod:`tests.support.dummy_fabric`.
"""

from __future__ import annotations

import random
import re
import shutil

import numpy as np
import pytest

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.routing.plan import Plan, make_plan
from knotless.topologies import load
from knotless.traffic.multipath import HashedLines
from tests.support.dummy_fabric import DummyFabric

pytestmark = pytest.mark.skipif(shutil.which("ovs-vswitchd") is None, reason="needs Open vSwitch")


def switches_of(plan: Plan, seed: int, source: int, to: int) -> list[str]:
    """Return the switches that the hash sends packets of a pair of hosts through."""
    _, *between, _ = HashedLines(plan, seed).channels_of(np.array([[source, to]]))
    heads = [plan.channels.names[plan.channels.head[channel[0]]] for channel in between]
    return [plan.fabric.hosts[source].switch, *heads]


@pytest.mark.smoke
@pytest.mark.thin(1)
@pytest.mark.parametrize(("spec", "seed"), [("fattree3,4", 0), ("fattree2,5", 7)])
def test_open_vswitch_takes_the_paths_that_the_hash_says(spec: str, seed: int) -> None:
    plan = make_plan(load(spec), multipath="ecmp", hash_seed=seed)
    rules, hosts = compile_rules(plan), plan.fabric.hosts
    fabric = DummyFabric(plan.fabric, rules)
    rng = random.Random(1)  # noqa: S311 - no secret
    taken = set()
    try:
        fabric.start()
        for name, of_switch in rules.items():
            flows, groups = (fabric.ofctl(verb, name) for verb in ("dump-flows", "dump-groups"))
            assert parse(flows, groups) == of_switch
        for _ in range(60):
            source, to = rng.sample(range(len(hosts)), 2)
            flow = f"in_port={hosts[source].port},dl_src={hosts[source].mac}"
            flow += f",dl_dst={hosts[to].mac},dl_type={rng.choice([0x0800, 0x0806])}"
            text = fabric.appctl("ofproto/trace", hosts[source].switch, flow)
            passed = re.findall(r'^ *bridge\("(\w+)"\)', text, re.MULTILINE)
            assert passed == switches_of(plan, seed, source, to), text
            assert text.rsplit(":", 1)[1].split(",")[0].strip().isdigit(), text
            taken.add(tuple(passed[1:-1]))
    finally:
        fabric.stop()
    assert len(taken) > 5, "many paths"
