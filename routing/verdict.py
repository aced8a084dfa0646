"""The check: walks the rules themselves, and says whether they deliver and cannot deadlock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from routing.cdg import cycle_names, find_cycle
from routing.channels import PRIORITIES
from routing.flow_control import AUTO, resolved, verdict_text, waiting
from routing.host_tags import HostTags
from routing.multicast import MulticastGroup
from routing.rules import FabricRules
from routing.walker import Walker
from topologies.errors import RuleError
from topologies.fabric import Fabric


@dataclass(frozen=True)
class Verdict:
    """What the check found.

    ``pairs`` ordered pairs of different hosts were tried, ``undelivered`` of them failed: not
    exactly one copy, at the right host only, untagged and unchanged. ``broadcasts`` counts
    (source, receiver) of broadcasts likewise, ``multicasts`` (source, member) of the groups, where
    a copy to anybody else counts as undelivered too. ``max_channel_load`` is the most paths on
    a channel between switches. The mean number of switches counts a host to itself as one switch.
    ``cycle`` is a cycle of the joint channel dependency graph of all that was sent, under
    ``flow_control``.
    """

    fabric: str
    flow_control: str
    pairs: int
    undelivered: int
    broadcasts: int
    broadcasts_undelivered: int
    multicasts: int
    multicasts_undelivered: int
    max_channel_load: int
    mean_switches: float
    max_switches: int
    acyclic: bool
    cycle: list[str]
    problems: list[str]

    @property
    def failed(self) -> int:
        """How many receivers do not get what they should, or get what they should not."""
        return self.undelivered + self.broadcasts_undelivered + self.multicasts_undelivered

    @property
    def good(self) -> bool:
        """Whether everything is delivered and nothing can deadlock."""
        return self.failed == 0 and self.acyclic

    @property
    def text(self) -> str:
        """Whether it can deadlock under its flow control, in words."""
        return verdict_text(self.flow_control, self.cycle)

    def as_json(self) -> dict[str, object]:
        """Return the verdict as plain values."""
        return asdict(self)


def check(
    fabric: Fabric,
    rules: FabricRules,
    *,
    flow_control: str = AUTO,
    multicast: Sequence[MulticastGroup] = (),
    tags: HostTags | None = None,
) -> Verdict:
    """Walk ``rules`` for every ordered pair of hosts, and for what each sends to all or to a group.

    ``flow_control`` is one of :data:`routing.flow_control.CHOICES`; ``auto`` is PFC where frames
    wait in more than one priority between switches, otherwise PAUSE. ``tags`` are those that
    hosts put on their frames; None: they send untagged.

    Raises
    ------
    RuleError
        There are rules for a switch that the fabric has not.
    PlanError
        There is no such ``flow_control``.

    """
    resolved(flow_control, 1)
    for name in rules:
        if name not in fabric.switch_index:
            raise RuleError(f"there are rules for {name!r}, a switch that {fabric.name} has not")
    walker = Walker(fabric, rules, tags)
    walker.walk(multicast)
    priorities = {node % PRIORITIES for edge in walker.edges for node in edge}
    flow_control = resolved(flow_control, len(priorities))
    cycle = cycle_names(walker.channels, find_cycle(waiting(walker.edges, flow_control)))
    hosts = len(fabric.hosts)
    walks = hosts * (hosts - 1) - walker.undelivered + hosts
    return Verdict(
        fabric=fabric.name,
        flow_control=flow_control,
        pairs=hosts * (hosts - 1),
        undelivered=walker.undelivered,
        broadcasts=hosts * (hosts - 1),
        broadcasts_undelivered=walker.broadcasts_undelivered,
        multicasts=sum(len(group.members) for group in multicast) * (hosts - 1),
        multicasts_undelivered=walker.multicasts_undelivered,
        max_channel_load=max(walker.loads, default=0),
        mean_switches=(walker.switches_passed + hosts) / walks,
        max_switches=walker.max_switches,
        acyclic=not cycle,
        cycle=cycle,
        problems=walker.all_problems(),
    )
