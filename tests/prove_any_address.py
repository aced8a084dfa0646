"""``python -m tests.prove_any_address [SAFE [UNSAFE]]``: traffic to any address, simulated.

Random fabrics with rules of plans and of others. Where the check says that they cannot deadlock,
packets to random addresses (of hosts, unknown ones, broadcast and multicast) must never freeze. Of
those that only packets to addresses of no host make unsafe, and whose rules do not leave a choice
to switches, the packets of the witnesses alone should freeze 95 %. The tests run ten of each.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from knotless.base.errors import PlanError
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.rules import FabricRules
from knotless.routing.plan import make_plan
from knotless.topologies import Fabric, load
from knotless.topologies.numbering import mac_value
from knotless.verification.check import Verdict, check
from tests.support.any_address import ARP, IPV4, IPV6, addresses, foreign, random_rules
from tests.support.lossless_network import LosslessNetwork, Sent
from tests.support.random_fabrics import small_fabric
from tests.support.ties import ties

SPECS = ("ring,4", "ring,5,hosts=2", "mesh,3,3", "torus,3,3", "clos,4,hosts=2", "fattree2,4")
ENGINES = ("updown", "prefix", "lturn", "rturn")
BROADCAST = 0xFFFFFFFFFFFF


@dataclass
class Outcome:
    """The fabrics tried, by number, and those that did not do what the verdict says."""

    safe: int = 0
    unsafe: int = 0
    frozen_although_safe: list[str] = field(default_factory=list)
    not_frozen: list[str] = field(default_factory=list)


def prove(safe: int, unsafe: int, first_seed: int = 0) -> Outcome:
    """Simulate so many fabrics of either kind; other fabrics that are drawn do not count."""
    outcome = Outcome()
    for seed in _numbers(first_seed):
        if outcome.safe >= safe and outcome.unsafe >= unsafe:
            return outcome
        rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
        fabric = load(rng.choice(SPECS)) if rng.random() < 0.7 else small_fabric(rng)
        try:
            plan = make_plan(fabric, rng.choice(ENGINES))
        except PlanError:
            continue
        rules = foreign(compile_rules(plan), random_rules(fabric, rng))
        verdict = check(fabric, rules, flow_control="pause")
        if verdict.acyclic and outcome.safe < safe:
            outcome.safe += 1
            if LosslessNetwork(fabric, rules, rng).freezes(_any(fabric, rules, rng)):
                outcome.frozen_although_safe.append(f"seed {seed}: {fabric.name}")
        if verdict.acyclic or outcome.unsafe >= unsafe or next(ties(rules), None) is not None:
            continue
        if check(fabric, rules, flow_control="pause", any_address=False).acyclic:
            outcome.unsafe += 1
            sends = _witnesses(fabric, verdict)
            if not any(_freezes(fabric, rules, sends, rng, room) for room in (1, 2, 4)):
                shown = ", ".join(f"{step.packet}: {step.held}" for step in verdict.witnesses)
                outcome.not_frozen.append(f"seed {seed}: {fabric.name}: {shown}")
    raise AssertionError("unreachable: seeds never end")


def _numbers(first: int) -> Iterator[int]:
    while True:
        yield first
        first += 1


def _freezes(
    fabric: Fabric,
    rules: FabricRules,
    sends: dict[str, list[Sent]],
    rng: random.Random,
    room: int,
) -> bool:
    return LosslessNetwork(fabric, rules, rng, room).freezes(sends)


def _any(fabric: Fabric, rules: FabricRules, rng: random.Random) -> dict[str, list[Sent]]:
    """Return what hosts send: a fourth each to hosts, unknown addresses, all, and groups."""
    hosts = [mac_value(host.mac) for host in fabric.hosts]
    others = [a for a in addresses(fabric, rules, rng) if a not in hosts]
    unknown = [a for a in others if not a >> 40 & 1]
    groups = [a for a in others if a >> 40 & 1]
    kinds = (hosts, unknown, [BROADCAST], groups)
    sends: dict[str, list[Sent]] = {}
    for host in fabric.hosts:
        kinds_of_host = [[a for a in kind if a != mac_value(host.mac)] or kind for kind in kinds]
        drawn = [rng.choice(rng.choice(kinds_of_host)) for _ in range(400)]
        sends[host.name] = [(to, rng.choice([IPV4, IPV4, ARP, IPV6])) for to in drawn]
    return sends


def _witnesses(fabric: Fabric, verdict: Verdict) -> dict[str, list[Sent]]:
    """Return the packets of a cycle's witnesses, by their source."""
    macs = {host.name: mac_value(host.mac) for host in fabric.hosts}
    sends: dict[str, list[Sent]] = {}
    for step in verdict.witnesses:
        text, _, eth_type = step.destination.partition("/")
        if text == "all":
            sent = (BROADCAST, ARP)
        else:
            sent = (macs.get(text) or mac_value(text), int(eth_type or "0x0800", 16))
        sends.setdefault(step.source, []).append(sent)
    return sends


def main() -> int:
    """Print the figures; the status is 1 if a safe fabric freezes or too few others do."""
    numbers = [int(text) for text in sys.argv[1:]] or [100]
    safe, unsafe = numbers[0], (numbers[1:] or [max(1, numbers[0] // 2)])[0]
    outcome = prove(safe, unsafe)
    frozen = outcome.unsafe - len(outcome.not_frozen)
    lines = [
        f"{outcome.safe} safe fabrics: {len(outcome.frozen_although_safe)} freeze",
        *outcome.frozen_although_safe,
        f"{outcome.unsafe} unsafe fabrics: {frozen} freeze by their witnesses; the others:",
        *outcome.not_frozen,
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(bool(outcome.frozen_although_safe) or frozen < 0.95 * outcome.unsafe)


if __name__ == "__main__":
    sys.exit(main())
