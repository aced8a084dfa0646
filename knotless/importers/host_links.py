"""The waits of messages on the links of hosts of an imported fabric.

Virtual channels of these links are those of the buffers that pause the sender: of the switch for
what a host sends, of the host for what it receives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from knotless._core import forwarding as core

Turns = Iterable[tuple[int, int]]
"""The virtual channels in which a host receives, and sends what it must send before it takes."""


def _no_lines(_: Collection[int]) -> Iterable[str]:
    return ()


class HostTraffic(NamedTuple):
    """Packets that are sent at the same time as others, and where they wait on links of hosts.

    Ends are those of next-hop tables, or hosts. ``enters`` returns the virtual channels in which
    an end waits to send them. ``arrives`` returns those in which packets wait for an end, given
    the end, and the channel and the virtual channel that they hold. ``priorities`` are those of
    which one must be in use for them to be sent; none: they are sent in any case.
    """

    state: core.State
    enters: Callable[[int], Collection[int]]
    arrives: Callable[[int, int, int], Collection[int]]
    priorities: Collection[int] = ()


@dataclass(frozen=True, kw_only=True)
class HostLinks:
    """The waits of messages on the links of hosts, by what files say of these.

    ``turns`` returns the virtual channels of an end for messages of a priority that is received,
    and one that is sent for it. ``priorities`` are those in which all messages may be, if they are
    in one, ``called`` is what they are. ``together`` says why those of classes count for nothing;
    empty: switches tell them apart.
    ``hosts`` is their number, None: it is not known, as many can be behind a port. ``gaps`` and
    ``doubts``, for the priorities of messages, return what is not known: without the first nothing
    is safe, without the second no cycle is certain. They replace the doubts ``about_priorities``
    of the fabric.
    """

    traffics: Sequence[HostTraffic]
    turns: Callable[[int, int, int], Turns]
    priorities: Sequence[int] = (0,)
    together: str = "the files do not say by what switches tell messages of hosts apart"
    called: str = "priority"
    hosts: int | None = None
    gaps: Callable[[Collection[int]], Iterable[str]] = _no_lines
    doubts: Callable[[Collection[int]], Iterable[str]] = _no_lines
    about_priorities: str = ""


def one_buffer(states: Iterable[core.State], hosts: int | None = None) -> HostLinks:
    """Return links of hosts that have one buffer in each direction, for all messages."""
    traffics = [HostTraffic(state, lambda _: (0,), lambda *_: (0,)) for state in states]
    return HostLinks(traffics=traffics, turns=lambda *_: ((0, 0),), hosts=hosts)
