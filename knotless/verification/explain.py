"""Descriptions of problems: why packets are not delivered, and which rules are wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from knotless.forwarding.state import ForwardingState, Trace
from knotless.topologies.failures import host_parts
from knotless.verification.unreachable import dropped_pairs

MAX_PROBLEMS = 50
"""Limit of the packets, and of the rules, that are described."""


def problems_of(state: ForwardingState, *, may_loop: bool = True) -> list[str]:
    """Return a bounded number of lines: problems of packets first, then of rules.

    Some of the failed packets are traced again; the verdict has the total number. A packet that
    goes round holds each of its channels while it waits for the next. So if all channels pause and
    their dependencies have no cycle, there is none: ``may_loop`` is false then.

    Raises
    ------
    AssertionError
        A packet goes round although none may: the dependencies are not complete.

    """
    silent = [name for name in state.silent if name not in state.failures.switches]
    lines = [f"{name}: there are no rules for this switch" for name in silent]
    lines = [*_first(lines, "switches without rules"), *_of_packets(state, may_loop=may_loop)]
    rules = [f"{state.channels.names[switch]}: {text}" for switch, text in state.core.problems]
    return [*lines, *_first(rules, "problems of rules")]


def _first(lines: list[str], subject: str) -> list[str]:
    """Return the first lines, and the number of further ones."""
    more = len(lines) - MAX_PROBLEMS
    return [*lines[:MAX_PROBLEMS], f"and {more} more {subject}"] if more > 0 else lines


def _of_packets(state: ForwardingState, *, may_loop: bool) -> Iterator[str]:
    hosts = state.fabric.hosts
    part = host_parts(state.fabric, state.failures)
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
