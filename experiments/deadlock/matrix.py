"""Which cases the deadlock experiment runs: routes, flow control, protocol, repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.experiment import ExperimentError
from experiments.theory import Protocol

ROUTES = ("cyclic", "acyclic", "dateline")
FLOW_CONTROLS = ("none", "host", "switch", "all", "pfc")
PROTOCOLS: tuple[Protocol, ...] = ("udp", "tcp")


@dataclass(frozen=True)
class Case:
    """One run: these routes, under this flow control, with this protocol."""

    routes: str
    flow_control: str
    protocol: Protocol
    repeat: int = 1

    @property
    def loses(self) -> bool:
        """Whether some link is without flow control, so that frames can be lost."""
        return self.flow_control not in ("all", "pfc")

    def __str__(self) -> str:
        """Return it as a reader meets it in progress bars and errors."""
        return f"{self.routes} routes, flow control {self.flow_control}, {self.protocol.upper()}"


QUICK = (
    Case("cyclic", "none", "udp"),
    Case("cyclic", "all", "udp"),
    Case("acyclic", "all", "udp"),
    Case("dateline", "pfc", "udp"),
)
"""Enough to make the point: losing, freezing, and the two ways not to freeze."""


def sensible(routes: str, flow_control: str) -> bool:
    """Dateline virtual channels are priorities: they need flow control by priority."""
    return routes != "dateline" or flow_control == "pfc"


def choose(text: str | None, known: Sequence[str], what: str) -> tuple[str, ...]:
    """Read a comma-separated choice; None is all. Raises ExperimentError."""
    if text is None:
        return tuple(known)
    chosen = [part.strip() for part in text.split(",")]
    for part in chosen:
        if part not in known:
            raise ExperimentError(f"{what}: {part!r} is none of {', '.join(known)}")
    return tuple(known_part for known_part in known if known_part in chosen)


def cases(
    routes: str | None,
    flow_control: str | None,
    protocol: str | None,
    *,
    quick: bool,
    repeats: int,
) -> list[Case]:
    """List the cases in running order: by routes, for a fabric is built for each.

    Raises ExperimentError for unknown names, and when no sensible case is left.
    """
    by_routes = choose(routes, ROUTES, "--routes")
    by_flow_control = choose(flow_control, FLOW_CONTROLS, "--flow-control")
    by_protocol = choose(protocol, PROTOCOLS, "--protocol")
    found = [
        Case(r, f, p, repeat)
        for r in by_routes
        for f in by_flow_control
        for p in PROTOCOLS
        if p in by_protocol and sensible(r, f)
        for repeat in range(1, repeats + 1)
        if not quick or Case(r, f, p) in QUICK
    ]
    if not found:
        asked = {"--routes": routes, "--flow-control": flow_control, "--protocol": protocol}
        which = [f"{option} {value}" for option, value in asked.items() if value is not None]
        if quick:
            raise ExperimentError(
                f"{' '.join(['--quick', *which])}: no case is left; --quick has UDP with "
                + ", ".join(f"{case.routes}/{case.flow_control}" for case in QUICK)
            )
        raise ExperimentError(
            f"{' '.join(which)}: no case is left; dateline routes need --flow-control pfc"
        )
    return found
