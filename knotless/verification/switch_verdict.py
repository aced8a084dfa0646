"""The verdict on a forwarding state whose switches have the settings of a file.

What pauses is what the file calls lossless. Ingress buffers without a reserve wait for their pool
(:mod:`knotless.verification.pool_waits`), and limits that are too small lose frames
(:mod:`knotless.verification.switch_losses`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from knotless.base.flow_control import AUTO, refuse_bubbles
from knotless.base.printable import listed
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.routing.graphs.dependencies import (
    Edges,
    cycle_names,
    find_cycle,
    merged,
    virtual_channel,
)
from knotless.verification.check import Verdict, verdict_of
from knotless.verification.dependencies import Wait, blocking_steps, witnesses_of_steps
from knotless.verification.pool_waits import Waits, pool_cycle
from knotless.verification.switch_losses import SwitchEnds, losses_of
from knotless.verification.verdict_parts import Witness, is_pool, theorem_of

if TYPE_CHECKING:
    from knotless.base.switch_settings import SwitchFile


FRAME_OVERHEAD_BYTES = 22
"""Header, tag and FCS of a frame."""
_GIVEN = (
    "switches have the buffers that the file describes; those that it leaves out have a reserve"
)


def verdict_with_switches(
    state: ForwardingState,
    file: SwitchFile,
    flow_control: str = AUTO,
    *,
    packet_bytes: int = 1500,
) -> Verdict:
    """Return the verdict on ``state`` if its switches have the settings of ``file``.

    Parameters
    ----------
    state : ForwardingState
        What every switch does with every packet.
    file : SwitchFile
        The settings of the switches.
    flow_control : str
        One of :data:`knotless.base.flow_control.CHOICES`.
    packet_bytes : int
        The longest packet, without the header of its frame.

    Raises
    ------
    SwitchSettingsError
        The file names a switch or a port that the fabric does not have.
    PlanError
        The flow control does not exist, or has bubbles, of which the file says nothing.

    """
    refuse_bubbles(flow_control, "settings of switches")
    verdict = verdict_of(state, flow_control)
    used = frozenset({0, *state.priorities})
    ends = SwitchEnds(state.fabric, file, verdict.flow_control, used)
    ends.refuse_unknown_names()
    if not verdict.flow_control.switch_links.pauses:
        return verdict
    longest = packet_bytes + FRAME_OVERHEAD_BYTES
    waits = _waits(state, ends)
    alone = state.alone[waits.causes]
    first_free = _first_free(state, waits)
    steps = blocking_steps(waits.edges[alone], first_free)
    cycle = cycle_names(state.channels, find_cycle(waits.edges))
    if steps:
        blocked = cycle_names(state.channels, [step.holds for step in steps])
        rows = state.dependencies[waits.causes[alone]]
        witnesses = witnesses_of_steps(state, rows, first_free, steps)
    else:
        # Of pools without reserves, frames count as waiting for each of several outputs alone.
        through_pools = pool_cycle(waits, ends.shares(longest))
        blocked = [step.holds for step in through_pools]
        cycle = cycle or blocked
        witnesses = tuple(
            _witness(state, step.holds, step.requests, *step.packet[1:]) for step in through_pools
        )
    return replace(
        verdict,
        acyclic=not cycle,
        cycle=cycle,
        safe=not blocked,
        theorem=theorem_of(is_acyclic=not cycle, is_safe=not blocked),
        blocked=blocked,
        witnesses=witnesses,
        losses=losses_of(ends, longest),
        notes=[*_notes(ends), *_remedies(blocked, longest)],
        assumes=[_GIVEN, *verdict.assumes[1:]],
    )


def _waits(state: ForwardingState, ends: SwitchEnds) -> Waits:
    """Return the dependencies between virtual channels whose links pause them at both ends."""
    channels, links = state.channels, ends.flow_control.switch_links
    lossless = np.zeros((len(channels), VCS_PER_CHANNEL), dtype=bool)
    for channel in range(len(channels)):
        sender = (channels.names[channels.tail[channel]], int(channels.out_port[channel]))
        receiver = (channels.names[channels.head[channel]], int(channels.in_port[channel]))
        lossless[channel, sorted(ends.lossless(sender) & ends.lossless(receiver))] = True
    rows = state.dependencies
    held, requested = (
        np.where(lossless[rows[:, i], rows[:, i + 1]], virtual_channel(*rows[:, i : i + 2].T), -1)
        for i in (0, 2)
    )
    causes = np.flatnonzero((held >= 0) & (requested >= 0))
    both: Edges = np.stack([held[causes], requested[causes]], axis=1)
    edges = merged(both, links)

    def nodes_of(channel: int, priority: int) -> list[int]:
        node = np.array([virtual_channel(channel, priority)], dtype=np.int64)
        return [int(merged(node, links)[0])] if lossless[channel, priority] else []

    return Waits(
        channels=channels,
        rows=rows,
        groups=rows[:, 1],
        waiting=np.flatnonzero(requested >= 0),
        nodes=merged(requested[requested >= 0], links),
        edges=edges,
        causes=causes,
        classes=links.classes,
        traffics=(state,),
        nodes_of=nodes_of,
        waiting_of=lambda channel: {
            links.classes[priority] for priority in np.flatnonzero(lossless[channel]).tolist()
        },
        source_pools=ends.source_pools(),
    )


def _first_free(state: ForwardingState, waits: Waits) -> list[Wait]:
    """Return the waits for the first free of several virtual channels that all pause."""
    choices = []
    for wait in state.first_free:
        held, *requested = ([*waits.nodes_of(*hop)] for hop in (wait.held, *wait.requested))
        if held and all(requested):
            requests = sorted({nodes[0] for nodes in requested})
            choices.append(Wait(held[0], requests, wait.source, wait.destination))
    return choices


def _witness(
    state: ForwardingState, holds: str, requests: str, source: int, destination: int
) -> Witness:
    names = state.destination_name(source), state.destination_name(destination)
    return Witness(holds, requests, *names)


def _remedies(cycle: Sequence[str], longest: int) -> Iterator[str]:
    pools = [name for name in cycle if is_pool(name)]
    if pools:
        yield (
            f"ingress buffers wait for room in {listed(pools, 1)}: with a reserve they do not; give"
            f" each of these buffers reserved_bytes of {longest} or more"
        )


def _notes(ends: SwitchEnds) -> Iterator[str]:
    """Yield what of the file has no effect, and which priorities in use are not lossless."""
    if ends.flow_control.switch_links.by_channel:
        if any(settings.lossless is not None for settings in ends.ports.values()):
            yield "links that PAUSE stop all priorities: lossless of the file has no effect"
        return
    lossless = [ends.lossless(end) for end in ends.ports]
    lossy = sorted(
        priority
        for priority in ends.used
        if not all(priority in priorities for priorities in lossless)
    )
    if lossy:
        shown = ", ".join(map(str, lossy))
        yield f"packets use priority {shown}, which some port does not pause: it can drop them"
