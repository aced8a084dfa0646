"""The verdict on a forwarding state: whether all is delivered, and whether it can deadlock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from knotless.base.flow_control import AUTO, FlowControl
from knotless.base.verdict_text import assumptions, verdict_text
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import FabricRules
from knotless.forwarding.state import ForwardingState
from knotless.routing.flow_control import resolved
from knotless.routing.graphs.dependencies import cycle_names
from knotless.routing.multicast import MulticastGroup
from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric
from knotless.verification.blocking import judge
from knotless.verification.dependencies import priorities_of
from knotless.verification.explain import problems_of
from knotless.verification.unreachable import dropped_pairs, unreachable_pairs
from knotless.verification.verdict_parts import Witness


@dataclass(frozen=True)
class Outcome:
    """The metrics of a check, and a cycle.

    ``pairs`` ordered pairs of different hosts were traced; ``undelivered`` of them failed: not
    exactly one copy, at the right host only, untagged and unchanged. ``broadcasts`` counts (source,
    receiver) pairs of broadcasts in the same way, ``multicasts`` (source, member) pairs of groups;
    a copy to any other host counts as undelivered too. ``max_channel_load`` is the largest number
    of paths on a channel between switches. In the mean number of switches a host to itself counts
    as one switch. ``cycle`` is a cycle of the joint channel dependency graph of all packets under
    ``flow_control``. ``safe`` tells whether no deadlock is possible, and ``theorem`` by which
    argument (:mod:`knotless.verification.blocking`): it differs from ``acyclic`` only where packets
    wait for the first free of several channels. If it is not safe, ``blocked`` are virtual channels
    that can block each other, the cycle if one suffices, and ``witnesses`` are packets that do so,
    one for each. ``unreachable`` pairs are separated by the state's failures; what they send is
    dropped, which is no failure of delivery.
    """

    fabric: str
    flow_control: FlowControl
    pairs: int
    undelivered: int
    unreachable: int
    broadcasts: int
    broadcasts_undelivered: int
    multicasts: int
    multicasts_undelivered: int
    max_channel_load: float
    mean_switches: float
    max_switches: int
    acyclic: bool
    cycle: list[str]
    safe: bool
    theorem: str | None
    blocked: list[str]
    witnesses: tuple[Witness, ...]

    @property
    def failed(self) -> int:
        """The number of receivers with missing, duplicate or unwanted copies."""
        return self.undelivered + self.broadcasts_undelivered + self.multicasts_undelivered

    @property
    def ok(self) -> bool:
        """Return whether everything is delivered and no deadlock is possible."""
        return self.failed == 0 and self.safe

    @property
    def text(self) -> str:
        """The deadlock verdict as text, with the flow control."""
        if self.blocked == self.cycle:
            return verdict_text(self.flow_control, self.cycle)
        return verdict_text(self.flow_control, [], blocked=self.blocked)

    def as_json(self) -> dict[str, object]:
        """Return the metrics as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Verdict(Outcome):
    """The result of a check; ``problems`` are lines for people, see :func:`problems_of`.

    ``assumes`` is what the verdict takes for granted, see :func:`assumptions`. ``losses`` are
    settings of switches by which lossless frames can be lost, ``notes`` others worth a look.
    """

    problems: list[str]
    assumes: list[str]
    losses: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Return whether all is delivered, no deadlock is possible, and nothing can be lost."""
        return super().ok and not self.losses


def verdict_of(state: ForwardingState, flow_control: str = AUTO) -> Verdict:
    """Return the verdict on ``state`` under one of :data:`knotless.base.flow_control.CHOICES`.

    ``auto`` is PFC if packets wait in more than one priority between switches, else PAUSE.

    Raises
    ------
    PlanError
        The flow control does not exist.

    """
    outcome = outcome_of(state, flow_control)
    may_loop = not (outcome.acyclic and outcome.flow_control.switch_links.pauses)
    return Verdict(
        **vars(outcome),
        problems=problems_of(state, may_loop=may_loop),
        assumes=assumptions(outcome.flow_control),
    )


def outcome_of(state: ForwardingState, flow_control: str = AUTO) -> Outcome:
    """Return the metrics of :func:`verdict_of`, without the time that descriptions take."""
    control = resolved(flow_control, priorities_of(state))
    judged = judge(state, control)
    hosts, pairs, core = len(state.fabric.hosts), state.pairs, state.core
    load = round(float(state.loads.max(initial=0.0)), 9)  # sums of equal shares
    receivers = sum(len(group.members) for group in state.groups)
    dropped = dropped_pairs(state)
    floods = [n - due for n, due in zip(core.floods_undelivered, dropped, strict=True)]
    return Outcome(
        fabric=state.fabric.name,
        flow_control=control,
        pairs=pairs,
        undelivered=core.undelivered - dropped[0],
        unreachable=unreachable_pairs(state),
        broadcasts=pairs,
        broadcasts_undelivered=floods[0],
        multicasts=receivers * (hosts - 1),
        multicasts_undelivered=sum(floods[1:]),
        max_channel_load=int(load) if load.is_integer() else load,
        mean_switches=(core.switches_passed + hosts) / (pairs - core.undelivered + hosts),
        max_switches=core.max_switches,
        acyclic=not judged.cycle,
        cycle=cycle_names(state.channels, judged.cycle),
        safe=not judged.steps,
        theorem=judged.theorem,
        blocked=cycle_names(state.channels, [step.holds for step in judged.steps]),
        witnesses=judged.witnesses,
    )


def check(
    fabric: Fabric,
    rules: FabricRules,
    *,
    flow_control: str = AUTO,
    multicast: Sequence[MulticastGroup] = (),
    tags: HostTags | None = None,
    any_address: bool = True,
) -> Verdict:
    """Return the verdict on ``rules`` for all unicasts, broadcasts and multicasts.

    ``tags`` are the VLAN tags that hosts add; None: they send untagged. With ``any_address``, what
    they send to addresses that no host has can close a cycle, too.

    Raises
    ------
    RuleError
        A number in a rule is out of range, or a switch with rules is not in the fabric.
    PlanError
        The flow control does not exist.

    """
    state = state_of_rules(fabric, rules, multicast, tags, any_address=any_address)
    return verdict_of(state, flow_control)
