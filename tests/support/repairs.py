"""The promises of a repaired plan, checked on the rules that are compiled from it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.state import ForwardingState
from knotless.routing.repair import Repair, failed_channels, repair
from knotless.topologies import Fabric, Host
from knotless.topologies.failures import Failures
from knotless.verification.check import verdict_of
from knotless.verification.checked_plan import CheckedPlan


@dataclass(frozen=True)
class Outcome:
    """A repair that kept its promises, and how many rules it changed per switch that works."""

    repair: Repair
    rules_changed: float


def single_links(fabric: Fabric) -> Iterator[Failures]:
    """Yield the failure of each link by itself."""
    for link in fabric.links:
        yield Failures.from_names(fabric, [link.name])


def sampled(fabric: Fabric, rng: random.Random, count: int) -> Iterator[Failures]:
    """Yield failures of two links, of a switch, and of a link and a switch, ``count`` of each."""
    links = [link.name for link in fabric.links]
    switches = [switch.name for switch in fabric.switches]
    for _ in range(count):
        if len(links) > 1:
            yield Failures.from_names(fabric, rng.sample(links, 2))
        yield Failures.from_names(fabric, [rng.choice(switches)])
        if links:
            yield Failures.from_names(fabric, [rng.choice(links), rng.choice(switches)])


def check_repair(intact: CheckedPlan, failures: Failures) -> Outcome:
    """Repair a plan and check everything that is promised; AssertionError if something fails."""
    plan, fabric = intact.plan, intact.plan.fabric
    result = repair(plan, failures)
    repaired = result.plan
    where = f"{plan.engine} on {fabric.name} without {failures.names}"
    checked = CheckedPlan(repaired)
    read = state_of_rules(fabric, checked.rules, plan.multicast, repaired.host_tags())
    read = replace(read, failures=failures)
    assert checked.state.difference(read) == "", where
    verdict = verdict_of(read, plan.flow_control)
    assert verdict.problems == [], where
    assert verdict.failed == 0, where
    # What the plan promised it promises still, under any flow control for which it did.
    for flow_control in (plan.flow_control, "pfc"):
        if verdict_of(intact.state, flow_control).acyclic:
            assert verdict_of(read, flow_control).acyclic, (where, flow_control)
    assert repaired.vcs <= plan.vcs, where
    assert repaired.flow_control == plan.flow_control, where
    _check_failed_channels(read, failed_channels(plan, failures), where)
    connected = _connected(fabric, failures)
    assert verdict.unreachable == result.summary()["unreachable"], where
    assert verdict.unreachable == len(fabric.hosts) * (len(fabric.hosts) - 1) - sum(
        len(others) - 1 for others in connected.values()
    ), where
    _check_paths(result, connected, where)
    dead = set(failures.switches)
    names = [switch.name for switch in fabric.switches if switch.name not in dead]
    changed = sum(
        len(set(checked.rules[name].rules) ^ set(intact.rules[name].rules)) for name in names
    )
    return Outcome(result, changed / max(1, len(names)))


def _check_failed_channels(state: ForwardingState, failed: NDArray[np.bool_], where: str) -> None:
    """No frame is sent into a failed channel."""
    assert not state.loads[failed].any(), where
    edges = state.dependencies[:, [0, 2]]
    assert not failed[edges].any(), where
    for hosts in state.fabric.hosts_at.values():
        if not hosts:
            continue
        host = next(iter(hosts.values()))
        floods = [state.flood(host.name, group) for group in range(1 + len(state.groups))]
        links = {hop.channel for trace in floods for hop in trace.hops}
        assert not any(failed[link] for link in links if link < len(failed)), where


def _connected(fabric: Fabric, failures: Failures) -> dict[str, set[str]]:
    """Return the hosts that each host can reach, itself included."""
    gone = set(failures.links)
    beyond: dict[str, set[str]] = {switch.name: set() for switch in fabric.switches}
    for link in fabric.links:
        a, b = f"{link.a}:{link.a_port}", f"{link.b}:{link.b_port}"
        works = {f"{a}-{b}", f"{b}-{a}"}.isdisjoint(gone)
        if works and {link.a, link.b}.isdisjoint(failures.switches):
            beyond[link.a].add(link.b)
            beyond[link.b].add(link.a)
    reached: dict[str, set[str]] = {}
    for host in fabric.hosts:
        if host.switch in failures.switches:
            reached[host.name] = {host.name}
            continue
        seen, waiting = {host.switch}, [host.switch]
        while waiting:
            new = beyond[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[host.name] = {other.name for other in fabric.hosts if other.switch in seen}
    return reached


def _check_paths(result: Repair, connected: dict[str, set[str]], where: str) -> None:
    """Paths without failed channels stay, in their VLANs; those that move are counted."""
    intact, repaired = result.intact, result.plan
    failed = failed_channels(intact, repaired.failures)
    fabric, switches = intact.fabric, intact.fabric.switch_index
    rows = zip(intact.routes.rows.tolist(), repaired.routes.rows.tolist(), strict=True)
    sources: dict[tuple[int, int], list[Host]] = {}
    for host, both in zip(fabric.hosts, rows, strict=True):
        sources.setdefault(both, []).append(host)
    targets = [list(hosts.values()) for hosts in fabric.hosts_at.values() if hosts]
    moved = 0
    for (old_row, new_row), senders in sources.items():
        for receivers in targets:
            source, target = senders[0], receivers[0]
            if source.switch == target.switch:
                continue
            to = switches[target.switch]
            old = intact.routes.path(old_row, to)
            new = repaired.routes.path(new_row, to)
            if target.name not in connected[source.name]:
                assert new == [], where
                continue
            moved += (new != old) * len(senders) * len(receivers)
            if result.kind in ("none", "repaired"):
                affected = any(failed[channel] for channel, _ in old)
                assert (new != old) == affected, where
                kept_vlan = intact.pair_vlans[old_row, to] == repaired.pair_vlans[new_row, to]
                assert affected or kept_vlan, where
    assert moved == result.moved, where
