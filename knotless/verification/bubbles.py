"""Bubbles: rings of virtual channels that cannot deadlock, because who enters leaves room.

A *ring* is a strongly connected component of the dependencies in which each virtual channel waits
for exactly one other. A frame *enters* it from a host, or from a virtual channel outside, and
*stays* in it from one of its virtual channels to the next. Under credits with bubbles

1. credit is counted in units of a longest frame, so that each frame takes one unit;
2. a frame that stays in a ring needs one unit, a frame that enters needs two, and each buffer of a
   ring has at least two;
3. frames that enter wait in a queue of their own, and never before frames that stay.

*If every cycle is in a ring, no deadlock is possible.* Suppose that hosts send nothing more, and
that nothing moves. No frame waits for a host, which takes what arrives. Components are ordered, as
no two wait for each other; take the last one that a frame waits for. If it is a single virtual
channel, frames fill its buffer that wait for nothing after it, hence not at all: so they move. If
it is a ring, count the frames in its buffers, but not those of which only copies for other outputs
are left. One more is counted only when a frame enters, and then two units were free, so that always
fewer are counted than there are units. Here all are counted, because none waits for what comes
after the ring. So some buffer of the ring has a free unit. If the buffer before it had a frame,
this would have to stay, and could: no frame that enters is before it. So the buffer before it is
empty, and so on: all are, and then a frame that enters has its two units.

With units that are smaller than a frame the room that is left can be in pieces, each of them too
small for the next frame. The argument says nothing about waiting: a frame that enters can starve.

References
----------
Carrion, Beivide, Gregorio and Vallejo, A flow control mechanism to avoid message deadlock in k-ary
n-cube networks, 1997.
Puente et al., Adaptive bubble router: a design to improve performance in torus networks, 1999.

"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from knotless._core import graph
from knotless.base.counting import counted
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.dependencies import Edges, cycle_names, find_cycle

_TOPIC = "bubbles: "


class Bubbles(NamedTuple):
    """The way in which switches let frames into rings; by default, that of the theorem.

    ``entry_units`` are the units of credit that a frame needs to enter, ``apart`` says whether such
    frames have a queue of their own. ``unit_bytes`` are the bytes of a unit and ``buffer_bytes``
    those of the smallest buffer, for frames of up to ``frame_bytes``; None: as the theorem asks.
    """

    entry_units: int = 2
    apart: bool = True
    unit_bytes: int | None = None
    buffer_bytes: int | None = None
    frame_bytes: int | None = None

    @property
    def faults(self) -> list[str]:
        """The conditions of the theorem that do not hold, a line for each."""
        return [_TOPIC + line for line in self._faults()]

    def _faults(self) -> Iterator[str]:
        if self.entry_units < 2:
            yield (
                f"a frame enters a ring with credit for {self.entry_units}, and can take its last"
                " room: it needs credit for two longest frames"
            )
        if not self.apart:
            yield (
                "frames that enter a ring have no second queue, and hold up those that stay in it:"
                " they must wait apart"
            )
        unit, frame, room = self.unit_bytes, self.frame_bytes, self.buffer_bytes
        if unit is not None and frame is not None and frame > unit:
            yield (
                f"frames of {frame} bytes are longer than the unit of credit, {unit} bytes: the"
                " unit must be the longest frame"
            )
        if unit is not None and room is not None and room < 2 * unit:
            yield (
                f"a buffer of {room} bytes has no room for two units of {unit}: no frame ever"
                " enters a ring"
            )


AS_PROVEN = Bubbles()
"""Those of the theorem."""


class Rings(NamedTuple):
    """The cycles of dependencies: ``rings``, in the order of waiting, and ``tangled`` edges.

    The latter are all edges of the other components that have cycles.
    """

    rings: list[list[int]]
    tangled: Edges


def rings_of(edges: Edges) -> Rings:
    """Return the rings of dependencies (dependencies, 2) between virtual channels.

    Examples
    --------
    >>> rings_of(np.array([(16, 32), (32, 48), (48, 16), (48, 64)])).rings
    [[16, 32, 48]]
    >>> rings_of(np.array([(16, 32), (32, 16), (32, 32)]))[1].tolist()
    [[16, 32], [32, 16], [32, 32]]

    """
    nodes, numbers = np.unique(edges, return_inverse=True)
    ends = numbers.reshape(-1, 2).astype(np.int32)
    component = graph.components(len(nodes), *np.ascontiguousarray(ends.T))
    inside = np.unique(ends[component[ends[:, 0]] == component[ends[:, 1]]], axis=0)
    waits_of = np.bincount(inside[:, 0], minlength=len(nodes))
    loops = np.bincount(inside[inside[:, 0] == inside[:, 1], 0], minlength=len(nodes))
    is_tangled = np.zeros(len(nodes), dtype=np.bool_)
    is_tangled[component[(waits_of > 1) | (loops > 0)]] = True
    tangled = is_tangled[component[inside[:, 0]]]
    following = dict(inside[~tangled].tolist())
    rings = []
    for first in sorted(following):
        ring = [first] if first in following else []
        while ring and (after := following.pop(ring[-1])) != first:
            ring.append(after)
        if ring:
            rings.append(nodes[ring].tolist())
    return Rings(rings, nodes[inside[tangled]])


def assumptions_of_bubbles(rings: Rings) -> list[str]:
    """Return what a verdict takes for granted that is safe by its rings."""
    lengths = sorted({len(ring) for ring in rings.rings})
    channels = f"{lengths[0]} to {lengths[-1]}" if len(lengths) > 1 else f"{lengths[0]}"
    number = counted(len(rings.rings), "rings")
    return [
        f"{_TOPIC}a frame that enters one of the {number} of {channels} virtual channels needs"
        " credit for two longest frames, and one that stays in it for one",
        f"{_TOPIC}frames that enter a ring wait in a queue of their own, never before those that"
        " stay in it",
        f"{_TOPIC}the unit of credit is the longest frame, and buffers have at least two units",
    ]


def notes_on_bubbles(state: ForwardingState, rings: Rings, bubbles: Bubbles) -> list[str]:
    """Return what bubbles do not do: for a safe state, and else why they do not make it safe."""
    if len(rings.tangled):
        first = cycle_names(state.channels, find_cycle(rings.tangled)[:1])[0]
        return [
            f"{_TOPIC}{first} is in cycles that are no ring: routes leave a ring and enter it"
            " again, or cross rings in another order",
            *bubbles.faults,
        ]
    if bubbles.faults:
        return bubbles.faults
    return [
        f"{_TOPIC}a deadlock is possible without the second queue, with room for one on entry, with"
        " a frame longer than the unit, and with routes that leave a ring and enter it again or"
        " cross rings in another order",
        f"{_TOPIC}frames that enter a ring can starve while frames in it always follow each other",
    ]
