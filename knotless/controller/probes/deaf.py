"""Deaf switches: they count the frames that arrive, and no probe among these comes out. Pure.

Counters say that the links of such a switch work: its ports receive. But whatever deals with frames
behind the ports has stopped, so no frame is forwarded, and no probe reaches the controller.

Neighbours may be deaf too: a link by which such a one sends nothing at all is not a probed one.

A switch is deaf when on each of its probed links at least :data:`LOST_PROBES` probes have left the
neighbour within at least :data:`LEAST_S`, its port has counted as many frames after the time of
flight, none of the probes has come, the switch has answered an echo since, nothing that it sent was
dropped on the way to the controller, and its tables have then been read and held all rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from knotless.controller.observed import Port
from knotless.controller.probes.paths import LOST_FRAMES, RETURNING_PROBES, Path, PathMonitor

DEAF = "deaf"
"""The fault of a switch, as events and metrics name it."""
LOST_PROBES = 20
"""So many probes must have left the neighbour, on each link."""
LEAST_S = 3.0
"""They must have been sent within at least this time."""
SILENT_S = 1.0
"""Counters are read when no probe has crossed any link of a switch for so long."""
SETTLING_S = 10.0
"""Others of which no probe has come for less than this time count as suspects too, when it is asked
whether they are many."""
LARGEST_SHARE = 0.25
"""More of the switches are not declared deaf."""
_MAX_LOOKS = 64
"""So many counters of a path are remembered."""


@dataclass(frozen=True)
class Look:
    """The counters of a path, read one after the other in this order.

    Attributes
    ----------
    at_s : the caller's clock, before anything was read.
    given : probes that the sender had been given before that. It has dealt with them since.
    crossed : the number of the last probe that had arrived.
    received : frames of any kind that the receiving port has counted.
    sent : frames that have left the sending port, of the priority of probes.
    waiting : frames of this priority that may wait at the sending port, at most.
    time_us : when these two were read, on the clock of the links.
    dropped : what the guard of the receiver's connection has dropped so far.
    connections : those of both switches.

    """

    at_s: float
    given: int
    crossed: int
    received: int
    sent: int
    waiting: int
    time_us: int
    dropped: int = 0
    connections: tuple[object, ...] = ()

    def continues(self, first: Look, last: Look) -> bool:
        """Return whether what was seen since ``first``, and until ``last``, still counts."""
        return (
            (self.crossed, self.dropped) == (first.crossed, first.dropped)
            and self.connections == first.connections
            and self.received >= last.received
            and self.sent >= last.sent
            and self.time_us >= last.time_us
        )


def lost_probes(looks: Sequence[Look], flight_us: float) -> int:
    """Return how many probes have left since the first look and were counted, at least.

    A probe that was given before a look has left when all that the port then had to send has. Both
    what has left and what was received count only after the time of flight: the frames that were
    counted before may have been sent before the first look.
    """
    if len(looks) < 2:
        return 0
    first, before, last = looks[0], looks[-2], looks[-1]
    counted = [b.received for a, b in pairwise(looks) if a.time_us - first.time_us >= flight_us]
    sent = [look.sent for look in looks if before.time_us - look.time_us >= flight_us]
    if not counted or not sent:
        return 0
    left = [look.given for look in looks if look.sent + look.waiting <= sent[-1]]
    return min(max(left, default=first.given) - first.given, last.received - counted[0])


@dataclass
class DeafSwitches:
    """The deaf switches of a fabric; times are the caller's monotonic clock, in seconds."""

    paths: PathMonitor
    _declared: dict[str, float] = field(default_factory=dict)
    """And when they were declared deaf."""
    _looks: dict[Port, list[Look]] = field(default_factory=dict)
    """By sending port."""
    _suspected: set[str] = field(default_factory=set)
    """Switches of which all counters say that they are deaf, and that answer."""
    _silent: dict[str, float] = field(default_factory=dict)
    """Switches none of whose links any probe crosses; and since when that was seen."""
    _hold_rules: set[str] = field(default_factory=set)
    """Those of them whose tables were read since, and are as they should be."""

    @property
    def declared(self) -> frozenset[str]:
        """The switches that are deaf."""
        return frozenset(self._declared)

    @property
    def suspected(self) -> frozenset[str]:
        """Further ones of which the counters and the echo say so."""
        return frozenset(self._suspected)

    def incoming(self, name: str) -> list[Path]:
        """Return the paths that show whether a switch is deaf: of its probed links.

        Those that are known to have another fault show nothing.
        """
        return self._incoming().get(name, [])

    def _incoming(self) -> Mapping[str, list[Path]]:
        incoming = defaultdict[str, list[Path]](list)
        wrong = self.paths.wiring.wrong_ports
        for path in self.paths.paths.values():
            is_wrong = path.sender in wrong or path.receiver in wrong
            if path.mode == "direct" and path.state != "failed" and not is_wrong:
                incoming[path.receiver[0]].append(path)
        return incoming

    def observe(self, now_s: float) -> list[str]:
        """Return the switches whose counters are to be read; forget those that probes cross.

        A deaf one is deaf no longer when probes cross one of its links, one soon after the other.
        """
        for path in self.paths.paths.values():
            declared_s = self._declared.get(path.receiver[0])
            if (
                declared_s is not None
                and path.crossed_s > declared_s
                and path.in_a_row >= RETURNING_PROBES
            ):
                del self._declared[path.receiver[0]]
        silent_s = max(SILENT_S, 2 * self.paths.interval_s)
        silent = {
            name
            for name, paths in self._incoming().items()
            if all(now_s - max(path.crossed_s, path.opened_s) >= silent_s for path in paths)
        }
        kept = {port for name in silent for port in (path.sender for path in self.incoming(name))}
        self._looks = {port: looks for port, looks in self._looks.items() if port in kept}
        self._silent = {name: self._silent.get(name, now_s) for name in silent}
        for name in self._suspected - silent:
            self._forget_suspect(name)
        return sorted(silent - self._declared.keys())

    def see(self, looks: Mapping[Port, Look]) -> None:
        """Take counters, by sending port."""
        for port, look in looks.items():
            seen = self._looks.setdefault(port, [])
            if seen and not look.continues(seen[0], seen[-1]):
                seen.clear()
            seen.append(look)
            if len(seen) > _MAX_LOOKS:
                del seen[1 : _MAX_LOOKS // 2]

    def is_evident(self, name: str) -> bool:
        """Return whether the counters of all probed links say that a switch is deaf."""
        incoming = [path for path in self.incoming(name) if not self._is_mute(path)]
        return bool(incoming) and all(map(self._shows, incoming))

    def _is_mute(self, path: Path) -> bool:
        """Return whether the sender seems to be deaf itself, and sends none of its probes."""
        looks = self._looks.get(path.sender, [])
        return (
            path.sender[0] in self._silent
            and len(looks) > 1
            and looks[-1].at_s - looks[0].at_s >= LEAST_S
            and looks[-1].given - looks[0].given >= LOST_FRAMES
            and looks[-1].sent == looks[0].sent
        )

    def _shows(self, path: Path) -> bool:
        looks = self._looks.get(path.sender, [])
        return (
            len(looks) > 1
            and looks[0].crossed == path.crossed
            and looks[-1].at_s - looks[0].at_s >= LEAST_S
            and lost_probes(looks, self.paths.flight_us) >= LOST_PROBES
        )

    def answered(self, name: str, dropped: int) -> None:
        """Take note that a switch has answered an echo that was sent after the last look.

        ``dropped`` is what the guard of its connection has dropped until then.
        """
        looks = [self._looks.get(path.sender, []) for path in self.incoming(name)]
        if self.is_evident(name) and all(each[0].dropped == dropped for each in looks):
            self._suspected.add(name)
        else:
            self.forget(name)

    def unread(self) -> list[str]:
        """Return the suspects whose tables are to be read."""
        return sorted(self._suspected - self._hold_rules)

    def rules_read(self, name: str, *, held: bool) -> None:
        """Take note that the tables of a suspect were read; ``held``: nothing was missing.

        What was missing explains that no probe has come: it is put back, and all begins anew.
        """
        if not held:
            self.forget(name)
        elif name in self._suspected:
            self._hold_rules.add(name)

    def ready(self, switches: int, now_s: float) -> list[str]:
        """Return what is to be declared deaf, of so many switches; nothing if they would be many.

        A deadlock explains all of it: see :meth:`forget_all`.
        """
        recent = {name for name, since_s in self._silent.items() if now_s - since_s < SETTLING_S}
        if len(self._declared.keys() | self._suspected | recent) > LARGEST_SHARE * switches:
            return []
        return sorted(filter(self.is_evident, self._hold_rules))

    def are_too_many(self, switches: int) -> bool:
        """Return whether more than a quarter of so many switches are deaf, or would be."""
        return len(self._declared.keys() | self._suspected) > LARGEST_SHARE * switches

    def declare(self, name: str, now_s: float) -> None:
        """Take a switch for deaf, until probes cross one of its links again."""
        self.forget(name)
        self._declared[name] = now_s

    def forget(self, name: str) -> None:
        """Begin anew with a switch that is not declared deaf."""
        self._forget_suspect(name)
        for path in self.paths.paths.values():
            if path.receiver[0] == name:
                self._looks.pop(path.sender, None)

    def _forget_suspect(self, name: str) -> None:
        self._suspected.discard(name)
        self._hold_rules.discard(name)

    def forget_all(self) -> None:
        """Begin anew with all switches that are not declared deaf."""
        self._looks.clear()
        self._silent.clear()
        self._suspected.clear()
        self._hold_rules.clear()

    def fit(self) -> None:
        """Go on with other links."""
        names = {path.receiver[0] for path in self.paths.paths.values()}
        self._declared = {name: at_s for name, at_s in self._declared.items() if name in names}
        self.forget_all()

    def stand_by(self) -> None:
        """Forget everything: another controller sends probes now."""
        self._declared.clear()
        self.forget_all()
