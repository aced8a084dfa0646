"""Frames that a step drops or keeps on the old routes, also for unused addresses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.rules import FabricRules
from knotless.forwarding.openflow.unused_addresses import masks_of
from knotless.forwarding.openflow.vlan_generations import (
    VlanGeneration,
    joined,
    rules_in,
    without_admission,
)
from knotless.routing.plan import make_plan
from knotless.topologies import Fabric, load
from knotless.topologies.numbering import mac_value
from knotless.verification.changes.drops import dropping, keeping

SPECS = ["ring,4", "mesh,3,3,hosts=2", "torus,3,3", "clos,3,hosts=2", "random,8,seed=1"]
Copies = list[tuple[int, list[int]]]


def _addresses(fabric: Fabric) -> Iterator[tuple[int, str | None]]:
    """Yield unicast addresses: those of hosts and near them, each with the host it belongs to.

    Those unlike all hosts in a bit in which these agree belong to none.
    """
    macs = {mac_value(host.mac): host.name for host in fabric.hosts}
    masks = masks_of(macs)
    for address in sorted({mac ^ (1 << bit) for mac in macs for bit in range(40)} | {*macs}):
        owners = [name for mac, name in macs.items() if not (address ^ mac) & masks[mac]]
        assert len(owners) < 2
        yield address, owners[0] if owners else None


def _copies(fabric: Fabric, rules: FabricRules, source: str, address: int) -> Copies:
    host = fabric.hosts[fabric.host_index[source]]
    switch = rules[host.switch].parsed
    return switch.outputs(host.port, address, mac_value(host.mac), 0x0800, [])[0]


@pytest.mark.parametrize("spec", SPECS)
def test_unused_addresses_are_dropped_with_a_host(spec: str) -> None:
    fabric = load(spec)
    rules = compile_rules(make_plan(fabric, "updown"))
    source, dropped = fabric.hosts[0].name, fabric.hosts[-1].name
    with_drops = dropping(rules, fabric, [(source, dropped)])
    for address, owner in _addresses(fabric):
        wanted = [] if owner == dropped else _copies(fabric, rules, source, address)
        assert _copies(fabric, with_drops, source, address) == wanted


@pytest.mark.parametrize("spec", SPECS)
def test_unused_addresses_keep_the_old_routes_of_a_host(spec: str) -> None:
    fabric = load(spec)
    old = compile_rules(make_plan(fabric, "updown"))
    new = rules_in(compile_rules(make_plan(fabric, "lturn")), VlanGeneration(1))
    admitting = joined(without_admission(old), new)
    source, kept = fabric.hosts[0].name, fabric.hosts[-1].name
    rules = keeping(admitting, old, fabric, [(source, kept)])
    differ = 0
    for address, owner in _addresses(fabric):
        before = _copies(fabric, old, source, address)
        after = _copies(fabric, admitting, source, address)
        differ += before != after
        wanted = before if owner == kept else after
        assert _copies(fabric, rules, source, address) == wanted
    assert differ > 0
