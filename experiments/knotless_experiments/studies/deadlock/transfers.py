"""The transfers, fabrics and routes of the deadlock experiment.

Three pairs of transfer patterns as in Otsuka et al., figure 8: (a), (c) and (e) close a cycle of
channels; (b), (d) and (f) are the same transfers on acyclic routes, with at most two of them per
channel. The paper describes the first pair in its text, ``ring-4`` here. The others are shown only
in a figure; those here are our own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from knotless_experiments.framework.experiment import ExperimentError

CYCLIC, ACYCLIC, DATELINE = "cyclic", "acyclic", "dateline"
MAX_PATHS_ON_A_CHANNEL = 2
"""As in the paper, so that the routes of a pair differ only in their cycle."""

DEFAULT_RATE_MBPS = 10.0

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Transfers:
    """Transfers (source, destination) on a fabric, and the available routes.

    ``routes`` are the arguments of :func:`knotless.routing.plan.make_plan` by name of the routes.
    ``letters`` are the paper's, for cyclic and acyclic routes. ``rate_mbps`` and ``delay_us``
    are the defaults of the links; a delay of None is that of any fabric.
    """

    name: str
    spec: str
    pairs: Pairs
    routes: Mapping[str, Mapping[str, Any]]
    letters: tuple[str, str]
    words: str
    rate_mbps: float = DEFAULT_RATE_MBPS
    delay_us: float | None = None

    @property
    def by_letter(self) -> dict[str, str]:
        """The routes' name for each of the two letters."""
        return dict(zip(self.letters, (CYCLIC, ACYCLIC), strict=True))


def _round(switches: int, hops: int) -> Pairs:
    """Every host of a ring, one per switch, sends to the host ``hops`` switches ahead."""
    return tuple((f"h{i + 1}", f"h{(i + hops) % switches + 1}") for i in range(switches))


_RING_ROUTES: Mapping[str, Mapping[str, Any]] = {
    CYCLIC: {"engine": "dor", "vcs": 1, "select": "low-port"},
    ACYCLIC: {"engine": "prefix", "select": "spread"},
    DATELINE: {"engine": "dor", "vcs": 2, "select": "low-port"},
}
"""With low-port every tie is broken in the same direction, and with one virtual channel the ring
of channels is then a cycle of dependencies."""

RING_4 = Transfers(
    "ring-4",
    "ring,4",
    _round(4, 2),
    _RING_ROUTES,
    ("a", "b"),
    "a ring of four switches, every host sending two switches ahead",
)
RING_6 = Transfers(
    "ring-6",
    "ring,6",
    _round(6, 2),
    _RING_ROUTES,
    ("c", "d"),
    "a ring of six switches, every host sending two switches ahead",
)
MESH_9 = Transfers(
    "mesh-3x3",
    "mesh,3,3",
    (
        ("h1", "h8"),
        ("h2", "h9"),
        ("h3", "h5"),
        ("h5", "h7"),
        ("h7", "h2"),
        ("h8", "h3"),
        ("h9", "h1"),
    ),
    {
        CYCLIC: {"engine": "minimal", "select": "spread"},
        ACYCLIC: {"engine": "prefix", "select": "spread"},
    },
    ("e", "f"),
    "a mesh of nine switches with seven transfers",
    rate_mbps=5.0,
    delay_us=5000.0,
)
"""Found by a seeded search: transfers that deadlock on plain shortest paths in the simulator and
have the same fair shares on both kinds of routes."""
EVERY = (RING_4, RING_6, MESH_9)
LETTERS = tuple(letter for transfers in EVERY for letter in transfers.letters)
NAMES = (*LETTERS, *(transfers.name for transfers in EVERY))


def named(name: str) -> Transfers:
    """Return the transfers called ``name``. Raises ExperimentError."""
    for transfers in EVERY:
        if transfers.name == name:
            return transfers
    raise ExperimentError(f"transfers {name[:40]!r}: there are {', '.join(t.name for t in EVERY)}")


def chosen(names: Sequence[str]) -> list[tuple[Transfers, tuple[str, ...]]]:
    """Return the transfers and routes for letters and names, in their order."""
    pairs = []
    for transfers in EVERY:
        letters = [name for letter, name in transfers.by_letter.items() if letter in names]
        routes = tuple(transfers.routes) if transfers.name in names else tuple(letters)
        if routes:
            pairs.append((transfers, routes))
    return pairs
