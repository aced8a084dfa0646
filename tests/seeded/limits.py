"""Limits by kind of fault: when all is served again, and what a controller says meanwhile.

``python -m tests.seeded.limits`` prints the tables of docs/seeded-controllers.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Limit:
    """The limit of a kind of fault.

    After ``served_after_s`` from its beginning or its end, all that is connected must be served.
    """

    served_after_s: float = 3.0


_RECONNECTS = Limit(5.0)
"""A switch connects again within a second, and is read and changed."""
_UNSEEN = Limit(10.0)
"""The end of a connection that was not seen is found by echo requests."""
_READ_AGAIN = Limit(8.0)
"""All switches are read again within 5 s, and repaired, and rules of others are reported."""
LIMITS: Mapping[str, Limit] = {
    **dict.fromkeys(("disconnect", "kill", "kill-at-message", "kill-at-write"), _RECONNECTS),
    "state-damaged": _RECONNECTS,
    **dict.fromkeys(("lose-at-switch", "lose-at-controller"), _UNSEEN),
    **dict.fromkeys(("restart", "restart-with-rules", "hang"), _UNSEEN),
    **dict.fromkeys(("rules-deleted", "rules-changed", "rules-added"), _READ_AGAIN),
    "full-table": Limit(10.0),
    "deaf": Limit(12.0),
    "duplicate-dpid": Limit(15.0),
    "part": Limit(20.0),
    "mute": Limit(15.0),
}
OTHER = Limit()
"""The limit of other kinds."""


def limit_of(kind: str) -> Limit:
    """Return the limit of a kind of fault."""
    return LIMITS.get(kind, OTHER)


# --- lines of problems -------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """A kind of line of ``problems``.

    Only after a fault of one of its ``kinds`` may it appear, and ``gone_after_s`` after the last
    fault of any kind has ended it must be gone, or may stay. ``*`` in the ``text`` stands for
    anything.
    """

    text: str
    kinds: tuple[str, ...]
    gone_after_s: float = inf

    def matches(self, line: str) -> bool:
        """Return whether a line is of this kind."""
        return re.fullmatch(".*".join(map(re.escape, self.text.split("*"))), line) is not None


_CUTS = ("cut", "flap", "restart", "restart-with-rules")
_CONTROLLERS = ("kill", "kill-at-message", "kill-at-write", "hang", "part", "state-damaged")
_CONNECTIONS = ("disconnect", "lose-at-switch", "lose-at-controller", "part")
_SWITCHES = (*_CONNECTIONS, *_CUTS[2:], "stall", "hang")
_ANY = tuple(
    dict.fromkeys((*_CUTS, "silent", "deaf", *_CONTROLLERS, *_CONNECTIONS, "stall", "mute"))
)
_GROWS = (*_ANY, "fabric-reloaded")
_RULES = ("rules-deleted", "rules-changed", "rules-added")
_OTHERS = (*_RULES, "full-table", "duplicate-dpid")
_RELOADS = ("groups-reloaded", "fabric-reloaded")
_OPERATORS = ("engine", "drain", "undrain", "groups", *_RELOADS)
_EVERY = (*_ANY, *_OTHERS, *_OPERATORS, "slow-frames", "state-unwritable")
_LEFT = Line("packets of older rules have not left *", _EVERY, 60.0)
LINES: tuple[Line, ...] = (
    Line("link * is down", _CUTS, 15.0),
    Line("the link of host * is down", ("duplicate-dpid", *_CUTS[2:]), 45.0),
    Line("link * has a carrier again, but probes have not crossed it yet", _GROWS, 15.0),
    Line("link * loses all frames *", ("silent", *_SWITCHES, *_OTHERS), 15.0),
    Line("failures separate *", (*_GROWS, *_OTHERS), 15.0),
    Line("* (dpid *) is not connected*", (*_SWITCHES, *_OTHERS), 15.0),
    Line("* (dpid *) is dead: nothing comes from it on any link", (*_SWITCHES, *_OTHERS), 15.0),
    Line("* (dpid *) is deaf: *", ("deaf",), 15.0),
    Line("* count the frames that arrive, but no probe among these comes out: *", ("deaf",), 15.0),
    Line("* (dpid *) had lost * of its rules of probes, *", _RULES, 15.0),
    Line("* (dpid *) does not hold its rules: others have changed *", _RULES, 15.0),
    Line("* (dpid *) holds * rules that are not Knotless's *", _RULES, 15.0),
    Line("* (dpid *) refused *", (*_RULES, "full-table"), 15.0),
    Line("two switches say they are *: only one is served", ("duplicate-dpid",), 45.0),
    Line("* more dpids are claimed by two switches: only one is served", _OTHERS[-1:], 45.0),
    Line("* (dpid *) has no port *", ("duplicate-dpid",), 45.0),
    Line("* (dpid *) has connected again, but no probe shows a cable *", _EVERY, 15.0),
    Line("* is drained but still used: *", ("drain", "state-damaged", _RELOADS[1]), 15.0),
    Line("the routes stay as they are: *", _EVERY, 5.0),
    _LEFT,
    Line("the configuration was not reloaded: *", _RELOADS, 60.0),
    Line("a switch with dpid * is connected, but fabric * declares no such dpid*", _RELOADS[1:]),
    Line("a change that was interrupted *", _CONTROLLERS, 60.0),
    Line("the state file is damaged, and *", ("state-damaged",), 60.0),
    Line("a successor will not know *", ("state-unwritable",), 15.0),
)
"""What may appear; any other line is a violation."""


@dataclass(frozen=True)
class Demand:
    """What must be said: while ``what`` lasts, a line names it ``after_s`` after its beginning."""

    what: str
    after_s: float


DEMANDS: Mapping[str, Demand] = {
    "cut": Demand("a link without a carrier", 3.0),
    "silent": Demand("a channel that loses all frames", 4.0),
    "deaf": Demand("a switch that forwards nothing", 14.0),
    "power": Demand("a switch without power", 3.0),
}
"""Judged while one controller leads, and no other fault is in its way: see :data:`IN_THE_WAY`."""
IN_THE_WAY = frozenset({*_CONTROLLERS, *_CONNECTIONS, "stall", "restart", "restart-with-rules"})


SUSPENDS = _LEFT
"""Under PFC, where no emulator tells what is on a link, a controller may wait for ever for frames
that nobody has counted: while it says so, and names only channels that have lost frames or whose
counters have started again, nothing needs to be served or settled."""


def line_of(text: str) -> Line | None:
    """Return the kind of a line of problems; None: there is none."""
    return next((line for line in LINES if line.matches(text)), None)


def tables() -> Iterator[str]:
    """Yield the lines of the tables of the page."""
    grows = "any, but of operators; fabric-reloaded"
    named = {_ANY: "any, but of operators", _GROWS: grows, _EVERY: "any"}
    yield "| fault | all that is connected is served after |"
    yield "|---|---|"
    for kind, limit in LIMITS.items():
        yield f"| {kind} | {limit.served_after_s:g} s |"
    yield f"| others | {OTHER.served_after_s:g} s |"
    yield ""
    yield "| must appear while there is | a line that names it, after |"
    yield "|---|---|"
    for demand in DEMANDS.values():
        yield f"| {demand.what} | {demand.after_s:g} s |"
    yield ""
    yield "| may appear | after a fault of kind | must be gone after the last fault |"
    yield "|---|---|---|"
    for line in LINES:
        text = line.text.replace("*", "...")
        kinds = named.get(line.kinds, ", ".join(line.kinds))
        gone = "may stay" if line.gone_after_s == inf else f"{line.gone_after_s:g} s"
        yield f"| {text} | {kinds} | {gone} |"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in tables())
