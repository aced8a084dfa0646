"""The proof and the coverage of backups: rules with fast-failover groups during a failure.

For each link and each switch that may fail, packets are followed through the rules that switches
hold. At every neighbour of the failed part they may take the port that leads to it or the backup,
in any mixture, because neighbours notice a failure one after the other. All dependencies together
must have no cycle. Those of channels that have failed are kept: so nothing can deadlock either
while the part returns. Once all neighbours have noticed, packets are followed again: these are the
pairs that are delivered. Packets that meet no rule that changes are followed only once, for all
failures together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from knotless.base.errors import RuleError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.rules import FabricRules
from knotless.routing.graphs.channels import channels_of
from knotless.routing.graphs.dependencies import cycle_names, find_cycle, waiting
from knotless.routing.multicast import MulticastGroup
from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import Failures, host_parts
from knotless.verification.delivery_outcome import DeliveryOutcome
from knotless.verification.failover_packets import Edge, Packet, Packets, Variant
from knotless.verification.failures import Failure, single_failures


@dataclass(frozen=True)
class Failover:
    """The effect of backups, without a controller, if ``failed`` has failed.

    ``pairs`` ordered pairs of hosts are still connected; ``affected`` of them are lost without
    backups, ``lost`` with backups, once all neighbours have noticed. ``cycle`` is a cycle of
    dependencies (``s1:2/0`` ..), or empty.
    """

    failed: str
    pairs: int
    affected: int
    lost: int
    cycle: tuple[str, ...]


@dataclass(frozen=True)
class Coverage:
    """The failover of every single failure: of all links between switches, then all switches."""

    failures: tuple[Failover, ...]

    @property
    def acyclic(self) -> bool:
        """Return whether no failure makes a deadlock possible."""
        return not any(failover.cycle for failover in self.failures)

    @property
    def affected(self) -> int:
        """The (pair, failure) combinations in which the pair is connected, but its path is not."""
        return sum(failover.affected for failover in self.failures)

    @property
    def lost(self) -> int:
        """The combinations of these that have no backup."""
        return sum(failover.lost for failover in self.failures)

    @property
    def share(self) -> float:
        """The share of the affected combinations that backups deliver."""
        return 1 - self.lost / self.affected if self.affected else 1.0

    def as_json(self) -> dict[str, object]:
        """Return the metrics that ``knotless plan --protection fast-failover`` adds."""
        return {
            "failures": len(self.failures),
            "affected": self.affected,
            "protected": self.affected - self.lost,
            "coverage": round(self.share, 4),
            "failover_acyclic": self.acyclic,
        }


def after_failover(fabric: Fabric, rules: FabricRules, failures: Failures) -> FabricRules:
    """Return the rules in effect when all neighbours have noticed the failures.

    The groups of these neighbours are of type 'all'; the rules of other switches stay as they are.
    If no port that is watched is down, ``rules`` itself is returned.
    """
    down: dict[str, set[int]] = {}
    for link in failures.dead_links(fabric):
        down.setdefault(link.a, set()).add(link.a_port)
        down.setdefault(link.b, set()).add(link.b_port)
    changed = {
        name: rules[name].live(ports)
        for name, ports in down.items()
        if name in rules and any(ports & {*group.watch} for group in rules[name].groups)
    }
    return {**rules, **changed} if changed else rules


def coverage(
    fabric: Fabric,
    rules: FabricRules,
    flow_control: FlowControl,
    groups: Sequence[MulticastGroup] = (),
    tags: HostTags | None = None,
) -> Coverage:
    """Return what backups in ``rules`` do in every single failure.

    Raises
    ------
    RuleError
        There are rules for a switch that is not in the fabric, or a number in a rule is out of
        range.

    """
    switches = {name: rules[name] for name in rules}  # decoded once
    for name in switches.keys() - fabric.switch_index.keys():
        raise RuleError(f"there are rules for {name!r}, which is not a switch of {fabric.name}")
    try:
        return _Proof(fabric, switches, flow_control, groups, tags).coverage()
    except OverflowError as error:
        raise RuleError(f"a number in a rule is out of range: {error}") from None


class _Proof:
    """The packets of the intact fabric, and the evaluation of one failure after the other."""

    def __init__(
        self,
        fabric: Fabric,
        rules: FabricRules,
        flow_control: FlowControl,
        groups: Sequence[MulticastGroup],
        tags: HostTags | None,
    ) -> None:
        self.fabric, self.rules, self.flow_control = fabric, rules, flow_control
        self.channels = channels_of(fabric)
        self.packets = Packets(fabric, self.channels, rules, groups, tags)
        self.edges = np.array(sorted(self.packets.edges), dtype=np.int64).reshape(-1, 2)
        self.variants: dict[tuple[int, frozenset[int]], tuple[Variant, list[Packet]]] = {}
        self.starts = {(s, self.packets.receiver(start)): start for s, start in self.packets.starts}
        intact = DeliveryOutcome(self.packets, (), (), {})
        self.lost = [ends for ends, start in self.starts.items() if not intact.delivers(start)]

    def coverage(self) -> Coverage:
        """Evaluate every single failure."""
        singles = single_failures(self.fabric, self.channels)
        return Coverage(tuple(map(self._failover, singles)))

    def _failover(self, failure: Failure) -> Failover:
        dead, dead_switches = self._dead(failure), failure.switches
        changed = self._changed(dead)
        variants = {variant.switch: variant for variant, _ in changed}
        met = [packet for _, packets in changed for packet in packets]
        cycle = self._cycle(self._diverted(changed, variants))
        part = host_parts(self.fabric, failure.parts_of(self.fabric))
        together = sum(count * (count - 1) for count in Counter(part).values())
        ends = [
            (source, to)
            for source, to in self._ends([*met, *self.packets.sent_on(sorted(dead))])
            if part[source] == part[to]
        ]

        def lost(outcome: DeliveryOutcome) -> int:
            return sum(not outcome.delivers(self.starts[pair]) for pair in ends)

        lost_without = lost(DeliveryOutcome(self.packets, dead, dead_switches, {}))
        lost_with = lost(DeliveryOutcome(self.packets, dead, dead_switches, variants))
        names = tuple(cycle_names(self.channels, cycle))
        return Failover(failure.names[0], together, lost_without, lost_with, names)

    def _dead(self, failure: Failure) -> set[int]:
        """Return the channels that a failure ends."""
        ends = np.isin(self.channels.tail, failure.switches)
        ends |= np.isin(self.channels.head, failure.switches)
        return {*failure.channels, *np.flatnonzero(ends).tolist()}

    def _changed(self, dead: Collection[int]) -> list[tuple[Variant, list[Packet]]]:
        """Return the rules that change when their switches notice, and the packets they divert."""
        down: defaultdict[int, set[int]] = defaultdict(set)
        for channel in dead:
            down[int(self.channels.tail[channel])].add(int(self.channels.out_port[channel]))
        changed = []
        for switch, ports in sorted(down.items()):
            rules = self.rules.get(self.channels.names[switch])
            if rules is None or not any(ports & {*group.watch} for group in rules.groups):
                continue
            key = (switch, frozenset(ports))
            if key not in self.variants:
                variant = self.packets.variant(switch, ports)
                self.variants[key] = (variant, self.packets.changed(variant))
            changed.append(self.variants[key])
        return changed

    def _diverted(
        self,
        changed: Iterable[tuple[Variant, Sequence[Packet]]],
        variants: Mapping[int, Variant],
    ) -> set[Edge]:
        """Return the dependencies that are added while neighbours notice, in any order."""
        packets, dependencies = self.packets, set[Edge]()
        seen: set[Packet] = set()
        ahead: list[Packet] = []

        def follow(packet: Packet, variant: Variant | None) -> None:
            for hop in packets.hops(packet, variant):
                dependencies.update(packets.edge(packet, hop))
                if (
                    hop.channel < packets.channels
                    and hop not in packets.reached
                    and hop not in seen
                ):
                    seen.add(hop)
                    ahead.append(hop)

        for variant, diverted in changed:
            for packet in diverted:
                follow(packet, variant)
        while ahead:
            packet = ahead.pop()
            follow(packet, None)
            if (other := variants.get(packets.switch_of(packet))) is not None:
                follow(packet, other)
        return dependencies

    def _cycle(self, added: set[Edge]) -> list[int]:
        """Return a cycle of the dependencies of the intact fabric and more, or an empty list."""
        more = np.array(sorted(added), dtype=np.int64).reshape(-1, 2)
        return find_cycle(waiting(np.concatenate([self.edges, more]), self.flow_control))

    def _ends(self, met: Iterable[Packet]) -> Iterator[tuple[int, int]]:
        """Yield the (source, receiver) of these packets, and those lost without failures."""
        sources: defaultdict[int, int] = defaultdict(int)
        for packet in met:
            sources[self.packets.receiver(packet)] |= self.packets.sources.get(packet, 0)
        for source, to in self.lost:
            sources[to] |= 1 << source
        for to, bits in sources.items():
            rest = bits
            while rest:
                low = rest & -rest
                rest ^= low
                yield low.bit_length() - 1, to
