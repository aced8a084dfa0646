"""One change on a running fabric, under full load by iperf3."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from knotless.base.errors import EmulationError
from knotless.emulation import waiting
from knotless.emulation.rest import Controller, exchange
from knotless.forwarding.openflow.ofctl_writer import write
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.topologies.fabric import Fabric
from knotless.traffic.flows import Flow, flows_of
from knotless_experiments.framework.experiment import EMULATION
from knotless_experiments.framework.routed import Measured, with_validity
from knotless_experiments.studies.change.cases import (
    NAIVE,
    PROVEN,
    Case,
    naive_rules,
    named,
    predicted,
)
from knotless_experiments.studies.change.columns import COLUMNS
from knotless_experiments.workloads import open_loop

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

LEAST_BEFORE_S = 0.5
CHANGE_LIMIT_S = 20.0
"""Under PFC, packets may never leave under full load: their links are never empty."""
_POLL_S = 0.02


@dataclass(frozen=True)
class _Traffic:
    case: Case

    @property
    def fabric(self) -> Fabric:
        return self.case.routed.fabric

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        hosts = self.fabric.hosts
        pairs = named(self.case.swap).pairs(self.fabric)
        return flows_of(self.case.routed.plan, ((hosts[a].name, hosts[b].name) for a, b in pairs))


def emulated(
    lab: EmulatedFabric, case: Case, *, duration_s: float, spread_s: float, seed: int
) -> Measured:
    """Change the rules of a running fabric, and watch it for ``duration_s`` afterwards.

    Naive: each switch gets all its new rules in one bundle, in random order within ``spread_s``,
    without the controller, which knows nothing of it. Proven: the controller performs its steps as
    fast as it can. Afterwards the fabric is emptied and gets its old rules back. Times are virtual,
    but for what the controller does.
    """
    rng, traffic = random.Random(seed), _Traffic(case)  # noqa: S311 - not for secrets
    problems = open_loop.settle(lab.daemon, case.flow_control)
    send_s = duration_s + spread_s + 2 * LEAST_BEFORE_S + open_loop.START_LIMIT_S
    send_s += CHANGE_LIMIT_S if case.way != NAIVE else 0.0
    controller = Controller(lab.names)
    with open_loop.senders(lab, traffic, "udp", send_s, seed) as clients:
        _, missing = open_loop.launch(lab, traffic, "udp", case.flow_control, clients)
        problems += missing
        before_s = LEAST_BEFORE_S * (1 + rng.random())
        _wait_until(lab, waiting.now_us(lab.daemon) + 1e6 * before_s)
        problems += _deadlock_before(lab)
        before_us = waiting.now_us(lab.daemon)
        order: list[str] = []
        dropped_s = 0.0
        if case.way == NAIVE:
            order = _push(lab, naive_rules(*case.key)[1], spread_s, rng)
        else:
            answer = controller.post("/change", named(case.swap).new)
            if _is_done(lab, controller):
                dropped_s, wrong = _dropped(controller, answer)
                problems += wrong
            else:
                problems.append(f"older packets had not left after {CHANGE_LIMIT_S:g} s")
        change_s = (waiting.now_us(lab.daemon) - before_us) / 1e6
        deadlock = _watch(lab, duration_s)
        status, counters = lab.daemon.status(), lab.daemon.counters()
        if deadlock is None and not all(client.running for client in clients):
            problems.append("a sender ended before the measurement did")
    if case.way == PROVEN and not _is_empty(lab):
        problems.append("frames were still in the fabric after the run")
    problems += open_loop.settle(lab.daemon, case.flow_control)
    if case.way == NAIVE:
        _push(lab, naive_rules(*case.key)[0], 0.0, rng)
    elif _is_done(lab, controller):
        controller.post("/change", {})
        if not _is_done(lab, controller):
            problems.append("the routes did not return after the run")
    about = {"seed": seed, "order": order, "change_s": round(change_s, 3), "dropped_s": dropped_s}
    row = _row(case, traffic, counters, deadlock, before_us, **about)
    return with_validity(row, status, problems), []


def _deadlock_before(lab: EmulatedFabric) -> list[str]:
    return ["a deadlock before the change"] if lab.daemon.status()["deadlock"] is not None else []


def _dropped(controller: Controller, answer: Mapping[str, Any]) -> tuple[float, list[str]]:
    """Return for how long the last change dropped frames, and how it differs from what it said."""
    change = exchange(controller.address, "GET", "/changes")["changes"][-1]
    pairs, expected = change["dropped_pairs"], answer["dropped_pairs"]
    wrong = [] if pairs == expected else [f"{pairs} pairs were dropped, {expected} were said"]
    return float(change["dropped_s"]), wrong


def _push(
    lab: EmulatedFabric, rules: Mapping[str, SwitchRules], spread_s: float, rng: random.Random
) -> list[str]:
    """Replace the rules of all switches, in random order; return the order."""
    names = list(rules)
    rng.shuffle(names)
    at_s = sorted(spread_s * rng.random() for _ in names)
    with TemporaryDirectory(prefix="knotless-change-") as folder:
        files = {name: Path(folder) / name for name in names}
        for name, path in files.items():
            path.write_text(_bundle(rules[name]), encoding="utf-8")
        began_us = waiting.now_us(lab.daemon)
        for name, wait_s in zip(names, at_s, strict=True):
            _wait_until(lab, began_us + 1e6 * wait_s)
            _replace(lab, name, files[name])
    return names


def _bundle(rules: SwitchRules) -> str:
    """Return all rules of a switch as one transaction: the switch holds the old or the new ones."""
    flows, groups = write(rules)
    lines = [f"group add_or_mod {line}" for line in groups.splitlines()]
    lines += ["flow delete", *(f"flow add {line}" for line in flows.splitlines())]
    return "\n".join(lines) + "\n"


def _replace(lab: EmulatedFabric, switch: str, bundle: Path) -> None:
    socket = f"unix:{lab.names.ovs_directory / switch}.mgmt"
    command = ["ovs-ofctl", "-O", "OpenFlow13", "bundle", socket, str(bundle)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["ovs-ofctl failed"]
        raise EmulationError(f"{switch}: {lines[-1]}")


def _is_done(lab: EmulatedFabric, controller: Controller) -> bool:
    """Wait until all frames follow the new routes; return False if that takes too long."""

    def done() -> bool:
        routes = controller.status()["routes"]
        return not routes["changing"] and not routes["older_rules"]

    return waiting.within(lab.daemon, CHANGE_LIMIT_S, done, _POLL_S)


def _is_empty(lab: EmulatedFabric) -> bool:
    """Wait until no frame is in the fabric.

    The controller waits for frames that were sent and not received: those that a reset of the
    emulator removes would keep it waiting for ever.
    """
    daemon = lab.daemon
    return waiting.within(daemon, waiting.QUIET_LIMIT_S, lambda: waiting.is_empty(daemon))


def _watch(lab: EmulatedFabric, duration_s: float) -> Mapping[str, Any] | None:
    """Wait for a deadlock; return it, or None if there is none within ``duration_s``."""
    end_us = waiting.now_us(lab.daemon) + 1e6 * duration_s
    while True:
        deadlock: Mapping[str, Any] | None = lab.daemon.status()["deadlock"]
        if deadlock is not None or waiting.now_us(lab.daemon) >= end_us:
            return deadlock
        time.sleep(waiting.LOOK_EVERY_S)


def _wait_until(lab: EmulatedFabric, at_us: float) -> None:
    """Wait until virtual time is ``at_us``."""
    while (left_us := at_us - waiting.now_us(lab.daemon)) > 0:
        time.sleep(min(left_us / 1e6, waiting.LOOK_EVERY_S))


def _row(
    case: Case,
    traffic: _Traffic,
    counters: Mapping[str, Any],
    deadlock: Mapping[str, Any] | None,
    before_us: int,
    **about: Any,
) -> dict[str, Any]:
    channels = {channel["channel"]: channel for channel in counters["channels"]}
    hosts = traffic.fabric.hosts
    dropped = sum(int(channels[host.name]["drops"]["unforwarded"]) for host in hosts)
    delivered = sum(int(channels[flow.last_channel]["rx_frames"]) for flow in traffic.flows)
    return COLUMNS.row(
        on=EMULATION,
        fabric=case.swap,
        flow_control=case.flow_control,
        way=case.way,
        repeat=case.repeat,
        **about,
        deadlock=deadlock is not None,
        deadlock_after_s=None
        if deadlock is None
        else round((deadlock["since_us"] - before_us) / 1e6, 3),
        cycle=[] if deadlock is None else list(deadlock["cycle"]),
        stopped_frames=dropped,
        lost_frames=int(counters["lost_frames"]) - dropped,
        delivered_frames=delivered,
        **predicted(case),
    )
