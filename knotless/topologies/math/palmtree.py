"""The global links of dragonflies in the palmtree arrangement, evenly also if groups are few."""

from __future__ import annotations

from collections.abc import Iterator

from knotless.base.errors import SpecError
from knotless.topologies.family import Request


def group_count(request: Request, ports: int, needed: tuple[str, ...]) -> int:
    """Return the number of groups ``g``, by default the most that ``ports`` global ports can join.

    Raises
    ------
    SpecError
        One of the options ``needed`` is below 1, or ``g`` is not 2 to ``ports`` + 1.

    """
    for key in needed:
        if request.options[key] < 1:
            raise SpecError(f"{request.name}: {key} must be at least 1")
    groups = request.options["g"] or ports + 1
    if not 2 <= groups <= ports + 1:
        raise SpecError(
            f"{request.name}: g must be 2 to {ports + 1}, one more than the global ports of a"
            f" group, not {groups}"
        )
    return groups


def palmtree(groups: int, ports: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield each global link once, as (group, port, peer, port of the peer), group < peer.

    Port m leads to the group at distance m + 1; a multiple of ``groups`` - 1 is a further round.
    The ports of an incomplete round join groups at the distances 1, -1, 2, -2, ..

    Examples
    --------
    >>> list(palmtree(3, 2))
    [(0, 0, 1, 1), (0, 1, 2, 0), (1, 0, 2, 1)]

    """
    # A round counts the same distances up and down, so the peer's port is the mirrored one.
    rounds = ports // (groups - 1)
    ends = {
        (turn, distance): turn * (groups - 1) + distance - 1
        for turn in range(rounds)
        for distance in range(1, groups)
    }
    for near in range(1, groups // 2 + 1):
        both = sorted({near, groups - near})
        if len(ends) + len(both) <= ports:
            ends |= {(rounds, distance): len(ends) + i for i, distance in enumerate(both)}
    for group in range(groups):
        for (turn, distance), port in ends.items():
            peer = (group + distance) % groups
            if group < peer:
                yield group, port, peer, ends[turn, groups - distance]
