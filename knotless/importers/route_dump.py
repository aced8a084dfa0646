"""Routes of one router, as dumps list them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

DEFAULT_VRF = "default"


@dataclass(frozen=True)
class NextHop:
    """A next hop: the address of a router (None: directly connected) by an interface.

    Without an interface the packet is dropped; without one of :data:`END` it has arrived.
    """

    address: str | None
    interface: str | None


DROP = NextHop(None, None)
"""A route that drops: blackhole, reject, unreachable."""
END = NextHop("", None)
"""The route to an address of the router itself."""


def distinct(routes: Mapping[str, tuple[NextHop, ...]]) -> Iterable[tuple[NextHop, ...]]:
    """Return the sets of next hops; routes of the same set mostly share one object."""
    return {id(hops): hops for hops in routes.values()}.values()


@dataclass
class RouteDump:
    """The routes in the forwarding table of a router: the next hops by VRF and prefix.

    A router picks one of several next hops. ``unclear`` are routes that are not understood.
    """

    routes: dict[tuple[str, str], tuple[NextHop, ...]] = field(default_factory=dict)
    unclear: list[str] = field(default_factory=list)
