"""The texts that name links: ``s1-s2``, ``s1:2-s2:3``, and of a host's link ``h1`` or ``h1-s1``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from knotless.base.errors import KnotlessError

LinkT = TypeVar("LinkT")
End = tuple[str, int]
"""A switch and its port, or a host and 0."""
_SHOWN = 8


def link_names(a: End, b: End) -> set[str]:
    """Return all texts that name a link: with and without ports, from either end.

    Examples
    --------
    >>> sorted(link_names(("s1", 2), ("s2", 3)))
    ['s1-s2', 's1:2-s2:3', 's2-s1', 's2:3-s1:2']
    >>> sorted(link_names(("h1", 0), ("s1", 1)))
    ['h1', 'h1-s1', 'h1-s1:1', 's1-h1', 's1:1-h1']

    """
    hosts = {name for name, port in (a, b) if port == 0}
    plain, with_ports = [[a[0], b[0]], [_with_port(a), _with_port(b)]]
    return {"-".join(ends[::step]) for ends in (plain, with_ports) for step in (1, -1)} | hosts


def _with_port(end: End) -> str:
    name, port = end
    return f"{name}:{port}" if port else name


class LinkNames(Generic[LinkT]):
    """The links of a fabric by the texts that name them.

    Parameters
    ----------
    links : iterable of (link, end, end)
        The links in the order of the fabric, and their ends.

    """

    def __init__(self, links: Iterable[tuple[LinkT, End, End]]) -> None:
        self._by_name: dict[str, list[tuple[LinkT, End, End]]] = {}
        for link in links:
            for name in link_names(*link[1:]):
                self._by_name.setdefault(name, []).append(link)

    def find(self, text: str, error: type[KnotlessError]) -> list[LinkT]:
        """Return the links that ``text`` names; several only if they are parallel, [] if none.

        Raises ``error`` if it names links between different nodes: with names such as ``a-b``, the
        text ``a-b-c`` may be a link of ``a`` and of ``a-b``.
        """
        links = self._by_name.get(text, [])
        if len({frozenset((a[0], b[0])) for _, a, b in links}) > 1:
            names = ", ".join(f"{_with_port(a)}-{_with_port(b)}" for _, a, b in links[:_SHOWN])
            raise error(f"{text[:80]!r} names links of different switches; write one of {names}")
        return [link for link, _, _ in links]
