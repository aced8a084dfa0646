"""The verdict on a forwarding state: whether all is delivered, and whether it can deadlock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from knotless.base.flow_control import AUTO, FlowControl, assumptions, resolved, verdict_text
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.forwarding.openflow.rules import FabricRules
from knotless.forwarding.state import ForwardingState, Trace
from knotless.routing.graphs.dependencies import cycle_names
from knotless.routing.multicast import MulticastGroup
from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import FAILED, host_parts, parts
from knotless.verification.bubbles import (
    AS_PROVEN,
    Bubbles,
    assumptions_of_bubbles,
    notes_on_bubbles,
)
from knotless.verification.dependencies import Judged, judge
from knotless.verification.verdict_parts import BUBBLE, Witness

MAX_PROBLEMS = 50
"""Limit of the packets, and of the rules, that are described."""


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
    argument (:mod:`knotless.verification.dependencies`): it differs from ``acyclic`` only where
    packets wait for the first free of several channels. If it is not safe, ``blocked`` are virtual
    channels that can block each other, the cycle if one suffices, and ``witnesses`` are packets
    that do so, one for each. ``unreachable`` pairs are separated by the state's failures; what they
    send is dropped, which is no failure of delivery.
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


def verdict_of(
    state: ForwardingState, flow_control: str = AUTO, bubbles: Bubbles = AS_PROVEN
) -> Verdict:
    """Return the verdict on ``state`` under one of :data:`knotless.base.flow_control.CHOICES`.

    ``auto`` is PFC if packets wait in more than one priority between switches, else PAUSE. Only
    ``bubble`` has ``bubbles``.

    Raises
    ------
    PlanError
        The flow control does not exist.

    """
    outcome, judged = _judged(state, flow_control, bubbles)
    rings = judged.rings
    may_loop = not (outcome.acyclic and outcome.flow_control.switch_links.pauses)
    return Verdict(
        **vars(outcome),
        problems=problems_of(state, may_loop=may_loop),
        assumes=assumptions(outcome.flow_control)
        + (assumptions_of_bubbles(rings) if rings and judged.theorem == BUBBLE else []),
        notes=[] if rings is None else notes_on_bubbles(state, rings, bubbles),
    )


def outcome_of(state: ForwardingState, flow_control: str = AUTO) -> Outcome:
    """Return the metrics of :func:`verdict_of`, without the time that descriptions take."""
    return _judged(state, flow_control, AS_PROVEN)[0]


def _judged(state: ForwardingState, flow_control: str, bubbles: Bubbles) -> tuple[Outcome, Judged]:
    control = resolved(flow_control, len(state.priorities))
    judged = judge(state, control, bubbles)
    hosts, pairs, core = len(state.fabric.hosts), state.pairs, state.core
    load = round(float(state.loads.max(initial=0.0)), 9)  # sums of equal shares
    receivers = sum(len(group.members) for group in state.groups)
    dropped = dropped_pairs(state)
    floods = [n - due for n, due in zip(core.floods_undelivered, dropped, strict=True)]
    outcome = Outcome(
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
    return outcome, judged


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


def problems_of(
    state: ForwardingState, *, may_loop: bool = True, part: Sequence[int] | None = None
) -> list[str]:
    """Return a bounded number of lines: problems of packets first, then of rules.

    Some of the failed packets are traced again; the verdict has the total number. A packet that
    goes round holds each of its channels while it waits for the next. So if all channels pause and
    their dependencies have no cycle, there is none: ``may_loop`` is false then. ``part`` is what
    :func:`host_parts` returns, if that is known.

    Raises
    ------
    AssertionError
        A packet goes round although none may: the dependencies are not complete.

    """
    silent = [name for name in state.silent if name not in state.failures.switches]
    lines = [f"{name}: there are no rules for this switch" for name in silent]
    lines = [*_first(lines, "switches without rules"), *_of_packets(state, part, may_loop=may_loop)]
    rules = [f"{state.channels.names[switch]}: {text}" for switch, text in state.core.problems]
    return [*lines, *_first(rules, "problems of rules")]


def _first(lines: list[str], subject: str) -> list[str]:
    """Return the first lines, and the number of further ones."""
    more = len(lines) - MAX_PROBLEMS
    return [*lines[:MAX_PROBLEMS], f"and {more} more {subject}"] if more > 0 else lines


def _of_packets(
    state: ForwardingState, part: Sequence[int] | None, *, may_loop: bool
) -> Iterator[str]:
    if not (state.core.undelivered or state.changing or state.core.failed_floods):
        return
    hosts = state.fabric.hosts
    part = host_parts(state.fabric, state.failures) if part is None else part
    failed, count = state.core.failed, state.core.undelivered - dropped_pairs(state)[0]
    outcome = _outcome
    if state.changing:  # what the first switch drops is dropped by the rules of a generation alone
        failed, count, outcome = state.core.lost_pairs, state.core.lost, _possible_outcome
    described = 0
    for source, target in failed:
        if described >= MAX_PROBLEMS:
            break
        name = hosts[source].name
        trace = _traced(state, name, target, may_loop=may_loop)
        is_dropped = not (trace.unsupported or trace.loops or trace.delivered)
        if is_dropped and target < len(part) and part[source] != part[target]:
            continue  # as it has to be
        described += 1
        yield f"{name} to {state.destination_name(target)}: {outcome(state, target, trace)}"
    more = count - described
    if more > 0:
        yield f"and {more} more pairs of hosts"
    described = 0
    for source, destination in state.core.failed_floods:
        if described >= MAX_PROBLEMS:
            yield "and more that is sent to many hosts"
            return
        trace = _traced(state, hosts[source].name, destination, may_loop=may_loop)
        for line in _of_flood(state, source, destination, trace, part):
            described += 1
            yield line


def _traced(state: ForwardingState, source: str, destination: int, *, may_loop: bool) -> Trace:
    """Trace a packet; raises AssertionError if it goes round although none may."""
    trace = state.trace_number(source, destination)
    if trace.loops and not may_loop:
        to = state.destination_name(destination)
        raise AssertionError(f"{source} to {to} goes round on channels whose waits have no cycle")
    return trace


def _outcome(state: ForwardingState, target: int, trace: Trace) -> str:
    """Describe what happens to a packet for one host."""
    names = state.channels.names
    if trace.unsupported:
        return f"what {names[trace.unsupported[0]]} does with the frame cannot be followed"
    if trace.loops:
        return "the frame goes round for ever"
    if not trace.delivered:
        place = f" at {names[trace.dropped[0]]}" if trace.dropped else ""
        return f"the frame is dropped{place}"
    if [host for host, _ in trace.delivered] != [target]:
        got = ", ".join(state.destination_name(host) for host, _ in trace.delivered[:5])
        return f"the frame arrives at {got}"
    if trace.delivered[0][1] != 0:
        return "the frame arrives tagged"
    if trace.repeated:
        return "the frame arrives more than once"
    return f"the frame can be dropped at {names[trace.dropped[0]]}"


def _possible_outcome(state: ForwardingState, target: int, trace: Trace) -> str:
    """Describe what can happen to a packet for one host while rules are changed."""
    names = state.channels.names
    during = "while the rules change, the frame can"
    if trace.unsupported:
        return _outcome(state, target, trace)
    if trace.loops:
        return f"{during} go round for ever"
    wrong = sorted({host for host, _ in trace.delivered} - {target})
    if wrong:
        return (
            f"{during} arrive at {', '.join(state.fabric.hosts[host].name for host in wrong[:5])}"
        )
    if trace.dropped:
        return f"{during} be dropped at {names[trace.dropped[0]]}"
    return f"{during} arrive more than once, or tagged"


def _of_flood(
    state: ForwardingState, source: int, destination: int, trace: Trace, part: Sequence[int]
) -> Iterator[str]:
    """Describe what is wrong with a flood from one host to all, or to a group.

    ``part`` is the part of the fabric of each host; those in other parts need no copy.
    """
    hosts = state.fabric.hosts
    group, _ = state.core.floods[destination - len(hosts)]
    name, sent = f"a broadcast of {hosts[source].name}", f"broadcasts from {hosts[source].name}"
    due = set(range(len(hosts)))
    if group:
        declared = state.groups[group - 1]
        name = f"a multicast of {hosts[source].name} to group {declared.number}"
        sent = f"multicasts from {hosts[source].name} to group {declared.number}"
        due = {state.fabric.host_index[member] for member in declared.members}
    due.discard(source)
    if trace.unsupported:
        switch = state.channels.names[trace.unsupported[0]]
        yield f"{name}: what {switch} does with the frame cannot be followed"
    if trace.loops:
        yield f"{name} goes round for ever"
    elif trace.repeated:
        yield f"two copies of {name} take the same channel"
    copies: dict[int, int] = {}
    for host, label in trace.delivered:
        copies[host] = copies.get(host, 0) + (1 if label == 0 else 2)
    wrong = [
        h
        for h in sorted(due | copies.keys())
        if copies.get(h, 0) != (h in due) and part[h] == part[source]
    ]
    for h in wrong[:3]:
        to = hosts[h].name
        if h not in due:
            yield f"{name} reaches {to}, which it is not for"
        else:
            fault = "" if copies.get(h, 0) == 0 else " exactly once and unchanged"
            yield f"{to} does not receive {sent}{fault}"


Ints = NDArray[np.int64]


def unreachable_pairs(state: ForwardingState) -> int:
    """Return the number of ordered pairs of hosts that the failures of ``state`` separate."""
    if not state.failures:
        return 0
    part = np.array(host_parts(state.fabric, state.failures))
    return _apart(part, part)


def dropped_pairs(state: ForwardingState) -> tuple[int, ...]:
    """Return how many of them are on different switches: of all hosts, then by multicast group.

    With a group the second host of a pair is a member. Hosts on one switch that has failed are
    separated too, but its rules deliver what they send to each other.
    """
    groups = [range(len(state.fabric.hosts)), *_members(state)]
    if not state.failures:
        return (0,) * len(groups)
    of_switch = parts(state.fabric, state.failures)
    numbers = [n if n != FAILED else len(of_switch) + i for i, n in enumerate(of_switch)]
    index = state.fabric.switch_index
    part = np.array([numbers[index[host.switch]] for host in state.fabric.hosts])
    return tuple(_apart(part, part[list(group)]) for group in groups)


def _members(state: ForwardingState) -> Iterable[list[int]]:
    """Yield the members of each group, as indices of hosts."""
    for group in state.groups:
        yield [state.fabric.host_index[name] for name in group.members]


def _apart(part: Ints, of_receivers: Ints) -> int:
    """Return how many pairs of a sender and a receiver are of different parts."""
    count = int(part.max()) + 1
    together = np.bincount(part, minlength=count) * np.bincount(of_receivers, minlength=count)
    return len(part) * len(of_receivers) - int(together.sum())
