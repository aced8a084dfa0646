"""Proof files: what a program that knows nothing of Knotless needs to check a verdict.

A file names the rules that it is about by their SHA-256, and the flow control. If no deadlock is
possible it has a rank for each queue, such that no frame waits for a queue of the same or a lower
rank, and classes of destination addresses, which only rules of single switches divide. If one is
possible it has the cycle, with a frame for each wait. ``proofs/`` has the specification and a
checker that is proven in Coq. Nothing in here is trusted: a checker accepts what is right, whoever
wrote it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import ProofError
from knotless.base.flow_control import FlowControl, refuse_bubbles
from knotless.forwarding.openflow.reader import BROADCAST
from knotless.forwarding.openflow.rules import FabricRules
from knotless.forwarding.state import ForwardingState, channel_ends_of
from knotless.routing.graphs.channels import VCS_PER_CHANNEL, Channels
from knotless.routing.graphs.dependencies import Edges, waiting
from knotless.routing.vlans.host_tags import EVERYTHING_ELSE, HostTags
from knotless.topologies.formats.switch_files import RULES
from knotless.topologies.numbering import mac_text, mac_value
from knotless.verification.address_classes import (
    EXACT,
    GROUPS,
    AddressClass,
    Cube,
    coarse_classes,
    hull,
    outside,
)
from knotless.verification.check import Outcome
from knotless.verification.dependencies import edges_of
from knotless.verification.proof_failures import ProvenFailures, cut_lines
from knotless.verification.proof_frames import SentFrames
from knotless.verification.proof_rules import (
    destination_patterns,
    not_covered,
    tests_other_fields,
)
from knotless.verification.proof_walk import Place, channels_to
from knotless.verification.verdict_parts import Witness

VERSION = "knotless-proof 3"
_IPV4, _ARP = 0x0800, 0x0806
"""EtherTypes of the frames that witnesses send."""
_PRIORITY_SHIFT = 13
_SPARSE = 16
"""If switches test less than one in so many of the shared patterns, classes are divided late."""


def proof_text(
    files: Mapping[str, bytes],
    state: ForwardingState,
    rules: FabricRules,
    verdict: Outcome,
    proven: ProvenFailures | None = None,
    sent: SentFrames | None = None,
    tags: HostTags | None = None,
) -> str:
    """Return the proof file of a verdict.

    Parameters
    ----------
    files : mapping of str to bytes
        The files of the folder of rules by name: ``fabric.json``, ``NAME.flows``, ``NAME.groups``.
    state, rules : ForwardingState, FabricRules
        What was read from these.
    verdict : Outcome
        The verdict on the state.
    proven : ProvenFailures, optional
        The failures of which the proof is as well, if the verdict is that nothing can deadlock.
    sent : SentFrames, optional
        The frames of hosts that it is about, if nothing can deadlock; by default, untagged ones
        from their own addresses.
    tags : HostTags, optional
        With which hosts have to send: the proof does not say that frames arrive then. Neither does
        it if a rule matches only some frames of those that proofs do not tell apart.

    Raises
    ------
    ProofError
        The specification does not cover the rules or the verdict; the message says what of it.

    """
    if reason := reason_not_covered(files):
        raise ProofError(f"proofs do not cover {reason}")
    require_covered(state, verdict.flow_control)
    if verdict.safe and verdict.failed:
        raise ProofError("such a proof says that all is delivered, and not all is: see check")
    delivers = tags is None and not tests_more(files)
    if not verdict.safe:
        sent = None if tags is None else SentFrames(tags="", sources="no")
    lines = head_lines(verdict.flow_control, [files], sent)
    if verdict.safe:
        edges = waiting(edges_of(state), verdict.flow_control)
        if proven is not None and proven.edges is not None:
            edges = proven.edges
        lines += ["claim safe" if delivers else "claim deadlock-free"]
        lines += [*rank_lines(edges, state.channels), *class_lines([files])]
        lines += [] if proven is None else _failure_lines(proven, state.channels)
    else:
        lines += ["claim cycle", *_wait_lines(state, rules, verdict, tags)]
    return "\n".join(lines) + "\n"


def reason_not_covered(files: Mapping[str, bytes]) -> str:
    """Return what proofs do not cover in the files of a folder, and which switch has it.

    ``files`` is as for :func:`proof_text`. Empty: they cover all.
    """
    flows, groups = RULES
    for name in sorted(files):
        switch = name.removesuffix(flows)
        if switch == name:
            continue
        texts = files[name].decode(), files.get(switch + groups, b"").decode()
        if reason := not_covered(*texts):
            return f"{reason}, which {switch} has"
    return ""


def tests_more(files: Mapping[str, bytes]) -> bool:
    """Tell whether some rule in the files of a folder tests fields of which proofs know nothing."""
    flows, _ = RULES
    texts = (content.decode() for name, content in files.items() if name.endswith(flows))
    return any(map(tests_other_fields, texts))


def require_covered(state: ForwardingState, control: FlowControl) -> None:
    """Raise ProofError for a flow control or a state that the specification has no claim for."""
    if not control.is_lossless:
        raise ProofError(
            f"proofs do not cover {control.description}, with which full buffers lose frames; they"
            " cover pause, pfc and credits"
        )
    refuse_bubbles(control, "proofs")
    if state.silent:
        raise ProofError(f"proofs need rules of all switches, and {state.silent[0]} has none")
    if state.first_free:
        raise ProofError("proofs do not cover frames that wait for the first free of several ports")


def head_lines(
    control: FlowControl,
    folders: Sequence[Mapping[str, bytes]],
    sent: SentFrames | None = None,
) -> list[str]:
    """Return the lines before the claim: flow control, frames, and the files of each folder."""
    lines = [VERSION, *flow_control_lines(control.value, control.switch_links.classes)]
    lines += [] if sent is None else sent.lines
    for number, files in enumerate(folders):
        lines += ["then"] * (number > 0)
        for name, content in sorted(files.items()):
            lines.append(f"file {name} {hashlib.sha256(content).hexdigest()}")
    return lines


def flow_control_lines(control: str, classes: Sequence[int]) -> Iterator[str]:
    """Yield the lines on a flow control that holds the priorities of each class back together.

    ``classes`` has the class of each priority. Raises ProofError if others are between those of a
    class.

    Examples
    --------
    >>> list(flow_control_lines("pfc", [0, 0, 0, 3, 4, 5, 6, 7]))
    ['flow-control pfc', 'group 0-2']

    """
    yield f"flow-control {control}"
    if len(set(classes)) == 1:
        return
    for number in dict.fromkeys(classes):
        first, last = classes.index(number), len(classes) - 1 - classes[::-1].index(number)
        if {*classes[first : last + 1]} != {number}:
            raise ProofError(
                f"proofs do not cover priorities {first} and {last} that share a queue"
            )
        if first < last:
            yield f"group {first}-{last}"


def rank_lines(edges: Edges, channels: Channels) -> Iterator[str]:
    """Yield the bound of the ranks that an acyclic graph gives, and those above 1."""
    nodes, rank = ranks(edges)
    yield f"bound {rank.max(initial=1)}"
    for node, number in zip(nodes.tolist(), rank.tolist(), strict=True):
        if number > 1:
            yield f"rank {channels.name(*divmod(node, VCS_PER_CHANNEL))} {number}"


def ranks(edges: Edges) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes of an acyclic graph, ascending, and the rank of each.

    The rank is the number of nodes on the longest path that ends in a node: 1 without edges to it.

    Examples
    --------
    >>> nodes, rank = ranks(np.array([(16, 32), (32, 48), (16, 48)]))
    >>> nodes.tolist(), rank.tolist()
    ([16, 32, 48], [1, 2, 3])

    """
    nodes, ends = np.unique(edges, return_inverse=True)
    holds, requests = np.unique(ends.reshape(-1, 2), axis=0).T
    first = np.searchsorted(holds, np.arange(len(nodes) + 1))
    missing = np.bincount(requests, minlength=len(nodes))
    rank = np.ones(len(nodes), dtype=np.int64)
    ready, level = np.flatnonzero(missing == 0), 1
    while len(ready):
        rank[ready], level = level, level + 1
        counts = first[ready + 1] - first[ready]
        rows = np.repeat(first[ready] - np.cumsum(counts) + counts, counts) + np.arange(
            counts.sum()
        )
        requested, times = np.unique(requests[rows], return_counts=True)
        missing[requested] -= times
        ready = requested[missing[requested] == 0]
    return nodes, rank


def _failure_lines(proven: ProvenFailures, channels: Channels) -> Iterator[str]:
    """Yield the lines on each failure; without ranks, it has those of the intact fabric."""
    for failure in proven.failures:
        yield f"failure {failure.name}"
        if proven.edges is None:
            yield from rank_lines(failure.edges, channels)
        if failure.cut is not None:
            yield from ("delivers", *cut_lines(failure.cut))


def class_lines(folders: Sequence[Mapping[str, bytes]]) -> Iterator[str]:
    """Yield classes of addresses, as few as can be followed quickly.

    If each switch tests few of the patterns that several switches test, as where rules are ranges
    of coordinates, the addresses of hosts are one class, which the checker divides on the way.
    Otherwise these patterns divide them at once: a class after the other takes less memory. If some
    test bits that all other addresses can have as well, as those of backups do, only the addresses
    around those of hosts are divided: others are dropped before it matters.
    """
    flows, _ = RULES
    of_switch: dict[str, str] = {}
    for name, content in chain.from_iterable(files.items() for files in folders):
        if name.endswith(flows):
            of_switch[name] = of_switch.get(name, "") + content.decode()
    patterns = destination_patterns(of_switch.values())
    shared = {pattern: switches for pattern, switches in patterns.items() if switches > 1}
    if hosts := [one for one in patterns if one.mask == EXACT and not one.meets(GROUPS)]:
        around = hull(hosts)
        nested = (p.contains(around) or around.contains(p) for p in shared if p.meets(around))
        if not all(nested):
            near, own = (
                {p.within(around) for p in some if p.meets(around)} for some in (shared, patterns)
            )
            others = map(AddressClass, outside(around))
            return map(class_line, [*others, *coarse_classes(near, own, around)])
        inside = [switches for pattern, switches in shared.items() if around.contains(pattern)]
        if _SPARSE * sum(inside) < len(inside) * len(of_switch):
            chosen = {p for p in shared if not around.contains(p)} | {around}
            return map(class_line, coarse_classes(chosen, patterns))
    return map(class_line, coarse_classes(shared, patterns))


def class_line(of_class: AddressClass) -> str:
    """Return the line of a class of addresses."""
    cube, *without = map(_cube_text, (of_class.cube, *of_class.without))
    return f"class {cube}" + (f" but {' '.join(without)}" if without else "")


def _cube_text(cube: Cube) -> str:
    return f"{mac_text(cube.value)}/{mac_text(cube.mask)}"


def _wait_lines(
    state: ForwardingState, rules: FabricRules, verdict: Outcome, tags: HostTags | None
) -> Iterator[str]:
    """Yield each wait of the cycle, with a frame and the channels on which it comes there."""
    walker = _Walker(state, rules, verdict.flow_control, tags)
    for witness in verdict.witnesses:
        source = state.fabric.hosts[state.fabric.host_index[witness.source]]
        destination, eth_type = _address(state, witness.destination)
        frame = f"{source.name} {mac_text(destination)} {source.mac.lower()}"
        frame += "".join(f" {vlan}/0" for vlan in walker.tags_of(source.name, destination))
        yield f"wait {witness.held} {witness.wanted} {frame}"
        yield f"via {' '.join([source.name, *walker.channels_of(witness, destination, eth_type)])}"


def _address(state: ForwardingState, destination: str) -> tuple[int, int]:
    """Return the address to which the packet of a witness is sent, and its EtherType."""
    if destination in state.fabric.host_index:
        return mac_value(state.fabric.hosts[state.fabric.host_index[destination]].mac), _IPV4
    groups = {f"multicast:{group.number}": group.address for group in state.groups}
    if destination in groups:
        return groups[destination], _IPV4
    if destination == "all":
        return BROADCAST, _ARP
    address, _, eth_type = destination.partition("/")
    return mac_value(address), int(eth_type, 0) if eth_type else _IPV4


class _Walker:
    """Follows single frames through rules, from switch to switch."""

    def __init__(
        self,
        state: ForwardingState,
        rules: FabricRules,
        control: FlowControl,
        tags: HostTags | None,
    ) -> None:
        self._state, self._rules, self._tags = state, rules, tags
        self._classes = control.switch_links.classes
        self._ends = channel_ends_of(state.fabric, state.channels)

    def tags_of(self, host: str, destination: int) -> tuple[int, ...]:
        """Return the VLANs, at most one, with which a host has to send to an address."""
        if self._tags is None:
            return ()
        vlans = self._tags[host]
        return (vlans.get(mac_text(destination), vlans[EVERYTHING_ELSE]),)

    def channels_of(self, witness: Witness, destination: int, eth_type: int) -> list[str]:
        """Return the channels on which a frame comes to the wait of a witness."""
        state = self._state
        host = state.fabric.host_index[witness.source]
        source = mac_value(state.fabric.hosts[host].mac)

        def onward(place: Place) -> Iterator[Place]:
            return self._next(place, destination, source, eth_type)

        tags = self.tags_of(witness.source, destination)
        return channels_to(witness, Place(*self._ends.hosts[host], tags), onward)

    def _next(self, place: Place, destination: int, source: int, eth_type: int) -> Iterator[Place]:
        channels = self._state.channels
        switch, port, tags = place[:3]
        behaviour = self._rules[channels.names[switch]].parsed
        choices, _ = behaviour.choices(port, destination, source, eth_type, tags)
        for port, tags in chain.from_iterable(choices):
            channel = channels.leaving.get((switch, port))
            if channel is not None:
                priority = tags[0] >> _PRIORITY_SHIFT if tags else 0
                name = channels.name(channel, self._classes[priority])
                yield Place(*self._ends.enters[channel], tuple(tags), name, place)
