"""The verdict on a forwarding state: whether everything is delivered, and if it can deadlock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from common.flow_control import AUTO
from forwarding.openflow.reader import state_of_rules
from forwarding.openflow.rules import FabricRules
from forwarding.state import ForwardingState
from routing.flow_control import resolved, verdict_text
from routing.graphs.dependencies import cycle_names
from routing.multicast import MulticastGroup
from routing.vlans.host_tags import HostTags
from topologies.fabric import Fabric
from verification.dependencies import Witness, cycle_of, priorities_of, witnesses
from verification.explain import problems_of


@dataclass(frozen=True)
class Verdict:
    """What the check found.

    ``pairs`` ordered pairs of different hosts were tried, ``undelivered`` of them failed: not
    exactly one copy, at the right host only, untagged and unchanged. ``broadcasts`` counts
    (source, receiver) of broadcasts likewise, ``multicasts`` (source, member) of the groups, where
    a copy to anybody else counts as undelivered too. ``max_channel_load`` is the most paths on
    a channel between switches. The mean number of switches counts a host to itself as one switch.
    ``cycle`` is a cycle of the joint channel dependency graph of all that was sent, under the
    flow control of that name; ``witnesses`` are packets that close it.
    """

    fabric: str
    flow_control: str
    pairs: int
    undelivered: int
    broadcasts: int
    broadcasts_undelivered: int
    multicasts: int
    multicasts_undelivered: int
    max_channel_load: float
    mean_switches: float
    max_switches: int
    acyclic: bool
    cycle: list[str]
    witnesses: tuple[Witness, ...]
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
        """Whether it can deadlock, and under which flow control, in words."""
        return verdict_text(self.flow_control, self.cycle)

    def as_json(self) -> dict[str, object]:
        """Return the verdict as plain values."""
        return asdict(self)


def verdict_of(state: ForwardingState, flow_control: str = AUTO) -> Verdict:
    """Return the verdict on a state under one of :data:`routing.flow_control.CHOICES`.

    ``auto`` is PFC where packets wait in more than one priority between switches, else PAUSE.

    Raises
    ------
    PlanError
        There is no such flow control.

    """
    flow_control = resolved(flow_control, priorities_of(state))
    cycle = cycle_of(state, flow_control)
    hosts, pairs, found = len(state.fabric.hosts), state.pairs, state.core
    load = float(state.loads.max(initial=0.0))
    receivers = sum(len(group.members) for group in state.groups)
    return Verdict(
        fabric=state.fabric.name,
        flow_control=flow_control,
        pairs=pairs,
        undelivered=found.undelivered,
        broadcasts=pairs,
        broadcasts_undelivered=found.floods_undelivered[0],
        multicasts=receivers * (hosts - 1),
        multicasts_undelivered=sum(found.floods_undelivered[1:]),
        max_channel_load=int(load) if load.is_integer() else load,
        mean_switches=(found.switches_passed + hosts) / (pairs - found.undelivered + hosts),
        max_switches=found.max_switches,
        acyclic=not cycle,
        cycle=cycle_names(state.channels, cycle),
        witnesses=witnesses(state, cycle, flow_control),
        problems=problems_of(state),
    )


def check(
    fabric: Fabric,
    rules: FabricRules,
    *,
    flow_control: str = AUTO,
    multicast: Sequence[MulticastGroup] = (),
    tags: HostTags | None = None,
) -> Verdict:
    """Return the verdict on ``rules``: on what every host sends to every other, to all, to groups.

    ``tags`` are the VLANs that hosts put on their frames; None: they send untagged.

    Raises
    ------
    RuleError
        A number of a rule fits no field, or there are rules for a switch that is not there.
    PlanError
        There is no such flow control.

    """
    return verdict_of(state_of_rules(fabric, rules, multicast, tags), flow_control)
