"""Verdicts with pools of switches, against frames that are followed one by one."""

from __future__ import annotations

import ipaddress
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from knotless.base.switch_settings import SwitchFile
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.openflow.directory import write_dir
from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.imported import verdict_of_imported
from knotless.verification.switch_verdict import FRAME_OVERHEAD_BYTES, verdict_with_switches
from knotless.verification.verdict_parts import is_pool
from tests.support.cycles import has_cycle
from tests.support.reference_rules import RuleReference
from tests.support.router_dumps import HOST_PORT, RouterNet
from tests.support.router_nets import random_net

SPECS = (
    *("mesh,2,1", "mesh,3,2", "torus,4,3", "torus,5", "ring,4", "fattree2,4", "clos,2,hosts=2"),
    *("mesh,3,hosts=1", "random,8,degree=3,hosts=1,seed=2"),
)
Buffer = tuple[str, int, int]
"""A switch, an input port and a priority."""
LONGEST = 1500 + FRAME_OVERHEAD_BYTES


def random_settings(rng: random.Random, ends: list[tuple[str, int]]) -> dict[str, Any]:
    """Return settings of switches in which some buffers share pools, some without a reserve."""
    switches: dict[str, Any] = {}
    likely = rng.choice([0.1, 0.5, 0.9])
    sparse = rng.choice([0.1, 0.6, 1.0])
    for switch in sorted({switch for switch, _ in ends}):
        ports = {}
        for port in [port for name, port in ends if name == switch]:
            groups = [
                {
                    "priorities": [priority],
                    "pool": rng.choice(["a", "b"]),
                    "reserved_bytes": LONGEST - (rng.random() < likely),
                    "alpha": 1.0,
                }
                for priority in range(3)
                if rng.random() < sparse
            ]
            ports[str(port)] = {"ingress": groups}
        pools = {name: {"side": "ingress", "bytes": 100_000} for name in ("a", "b")}
        switches[switch] = {"pools": pools, "ports": ports}
        lossless = rng.choice([None, [0, 1, 2], [0, 1]])
        if lossless is not None:
            switches[switch]["lossless"] = lossless
    return {"switches": switches}


def buffers(content: dict[str, Any]) -> tuple[dict[Buffer, str], set[Buffer]]:
    """Return the pool of each ingress buffer, and those with a reserve."""
    pools: dict[Buffer, str] = {}
    reserved: set[Buffer] = set()
    for switch, settings in content["switches"].items():
        for port, of_port in settings["ports"].items():
            for group in of_port["ingress"]:
                buffer = (switch, int(port), group["priorities"][0])
                pools[buffer] = group["pool"]
                if group["reserved_bytes"] >= LONGEST:
                    reserved.add(buffer)
    return pools, reserved


def waits_with_pools(
    reference: RuleReference,
    pool: dict[Buffer, str],
    reserved: set[Buffer],
    lossless: set[int],
) -> set[tuple[Any, Any]]:
    """Return what the frames that were followed hold in each switch while they wait for a channel.

    Those of hosts may be in any pool of the ingress buffers of their port.
    """
    edges: set[tuple[Any, Any]] = set()
    for (switch, in_port), frame, copies in reference.passes():
        held = reference.held((switch, in_port), frame)
        inputs = range(8) if held is None else [held[2]]
        pools = {pool.get((switch, in_port, priority)) for priority in inputs} - {None}
        for out_port, copy in copies:
            onward = reference.onward(switch, out_port, copy)
            if onward is None or copy.priority not in lossless:
                continue
            requested, (far, far_port) = onward
            edges |= {(("pool", switch, name), requested) for name in pools}
            if held is not None and held[2] in lossless:
                edges.add((held, requested))
            buffer = (far, far_port, copy.priority)
            if buffer in pool and buffer not in reserved:
                edges.add((requested, ("pool", far, pool[buffer])))
    return edges


@pytest.mark.seeds(60)
def test_plans_agree_with_frames_followed_one_by_one(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)  # noqa: S311
    fabric = load(rng.choice(SPECS))
    plan = make_plan(fabric, PlanRequest.from_options(select=rng.choice(["spread", "low-port"])))
    ends = [(host.switch, host.port) for host in fabric.hosts]
    for link in fabric.links:
        ends += [(link.a, link.a_port), (link.b, link.b_port)]
    content = random_settings(rng, ends)
    lossless = rng.choice([[0, 1, 2], [0]])
    for settings in content["switches"].values():
        settings["lossless"] = lossless
    checked = CheckedPlan(plan)
    write_dir(fabric, checked.rules, tmp_path)
    reference = RuleReference(tmp_path)
    reference.all_pairs()
    reference.broadcasts()
    verdict = verdict_with_switches(
        checked.state, SwitchFile.model_validate(content), "pfc", packet_bytes=1500
    )
    edges = waits_with_pools(reference, *buffers(content), set(lossless))
    assert verdict.acyclic is not has_cycle(edges)
    _check_witnesses(verdict.cycle, verdict.witnesses)


def _check_witnesses(cycle: list[str], witnesses: Any) -> None:
    assert [step.held for step in witnesses] == cycle
    assert [step.wanted for step in witnesses] == [*cycle[1:], *cycle[:1]]


@pytest.mark.parametrize("spec", ["torus,4,4", "torus,5,5", "mesh,3,3", "fattree3,4"])
def test_a_safe_plan_stays_safe_with_reserves_and_not_without(spec: str) -> None:
    state = state_of_plan(make_plan(load(spec)))
    for reserved, safe in ((LONGEST, True), (LONGEST - 1, False)):
        group = {"priorities": [*range(8)], "pool": "shared", "alpha": 1}
        content = {
            "pools": {"shared": {"side": "ingress", "bytes": 1_000_000}},
            "ingress": [{**group, "reserved_bytes": reserved}],
        }
        for control in ("pfc", "pause") if spec != "torus,5,5" else ("pfc",):
            verdict = verdict_with_switches(state, SwitchFile.model_validate(content), control)
            assert (verdict.acyclic, verdict.ok) == (safe, safe)
            assert any("pool shared of s" in name for name in verdict.cycle) is not safe
            _check_witnesses(verdict.cycle, verdict.witnesses)


def with_pools(net: RouterNet, rng: random.Random) -> dict[tuple[str, str, int], tuple[str, bool]]:
    """Give routers tables of buffers; return the pool and whether there is a reserve, by group."""
    groups: dict[tuple[str, str, int], tuple[str, bool]] = {}
    likely = rng.choice([0.1, 0.5, 0.9])
    for router in net.routers:
        rows = {}
        for port in (*net.ports(router), HOST_PORT):
            for group in range(8):
                if rng.random() < 0.8:
                    pool, reserved = rng.choice(["a", "b"]), rng.random() >= likely
                    rows[f"{port}|{group}"] = {"profile": f"{pool}{int(reserved)}"}
                    groups[router, port, group] = (pool, reserved)
        net.more.setdefault(router, {}).update(
            {
                "BUFFER_POOL": {
                    pool: {"type": "ingress", "mode": "dynamic", "size": "9000000"}
                    for pool in ("a", "b")
                },
                "BUFFER_PROFILE": {
                    f"{pool}{int(reserved)}": {
                        "pool": pool,
                        "size": "120000" if reserved else "0",
                        "xoff": "100000",
                        "dynamic_th": "0",
                    }
                    for pool in ("a", "b")
                    for reserved in (False, True)
                },
                "BUFFER_PG": rows,
            }
        )
    return groups


def acyclic_with_pools(
    net: RouterNet, groups: dict[tuple[str, str, int], tuple[str, bool]]
) -> bool:
    """Return whether nothing can wait for itself, following every packet of hosts alone."""
    edges: set[tuple[Any, Any]] = set()
    for source in net.hosts:
        for target in net.hosts:
            address = ipaddress.ip_network(net.hosts[target], strict=False)[1]
            for dscp in range(64) if source != target else ():
                edges |= set(net._waits(source, address, dscp))
                edges |= _pool_waits(net, groups, source, address, dscp)
    for a, b in net.peers.items():
        edges |= set(net._pauses(a, b))
    for (router, port, group), (pool, reserved) in groups.items():
        if not reserved:
            edges.add((("buffer", (router, port), group), ("pool", router, pool)))
    return not has_cycle(edges)


def _pool_waits(
    net: RouterNet, groups: Any, source: Any, address: Any, dscp: int
) -> set[tuple[Any, Any]]:
    edges: set[tuple[Any, Any]] = set()
    for into, out, shown in net.steps(source, address, dscp):
        if out not in net.peers:
            continue
        qos = net.qos[into[0]]
        port = into[1] if into in net.peers else HOST_PORT
        tc = qos.value(port, "dscp_to_tc_map", "DSCP_TO_TC_MAP", shown, 0)
        queue = qos.value(out[1], "tc_to_queue_map", "TC_TO_QUEUE_MAP", tc, 0)
        group = qos.value(port, "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", tc, 0)
        if (into[0], port, group) in groups:
            held = {groups[into[0], port, group][0]}
        else:  # of hosts, it may be any of the switch
            held = {pool for (r, _, _), (pool, _) in groups.items() if r == into[0]}
            held = set() if into in net.peers else held
        edges |= {(("pool", into[0], pool), ("queue", out, queue)) for pool in held}
    return edges


@pytest.mark.seeds(80)
def test_routers_agree_with_packets_followed_one_by_one(seed: int, tmp_path: Path) -> None:
    net, rng = random_net(seed), random.Random(seed)  # noqa: S311
    groups = with_pools(net, rng)
    verdict = verdict_of_imported(read_paths([net.write(tmp_path)]))
    expected = acyclic_with_pools(net, groups)
    if verdict.missing:
        assert all(text.startswith("what lossy packets fill") for text in verdict.missing)
        assert verdict.acyclic is None
    elif any("/25" in prefix for routes in net.routes.values() for prefix in routes):
        assert expected or verdict.acyclic is False
    else:
        assert verdict.acyclic is expected, verdict
    _check_witnesses(verdict.cycle, verdict.witnesses)
    assert not any(is_pool(a) and is_pool(b) for a, b in pairwise(verdict.cycle))
