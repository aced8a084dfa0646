"""Links that lose all frames although they have a carrier, as probes and counters show. Pure.

Each port to another switch sends probes at an interval. A *path* is what they test: the channel to
the next switch, or, if that switch has no controller, the way there and back.

A path on which probes are late is only suspected: it may be paused, its queues may be long, or the
fabric, the switches or this controller may be slow. It has failed when its sender has really
transmitted :data:`LOST_FRAMES` frames, and the receiving port, after the time of flight on the
clock of the links, has not counted a single one, whatever these frames were. Nothing here depends
on how long a probe may wait: without counters there is no failure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from knotless.controller.observed import Observed, Port, port_text
from knotless.controller.probes.cables import Wiring

LOST_FRAMES = 3
"""So many frames must have been sent, and none of them have arrived."""
RETURNING_PROBES = 3
"""So many probes must arrive, one soon after the other, until a failed path is used again."""
PROBES_PER_S = 5000
"""Large fabrics are probed less often: the interval grows with the number of paths."""
_LATE = 1.5
"""A path is suspected when no probe has arrived for this many intervals."""
_FAST = 4
"""Paths that are new or suspected are probed this many times as often."""
_FAST_FOR = 5
"""For how many intervals; later they are probed as all others."""
_UNSENT = 4
"""With so many probes in the queue of a paused port, more are sent once in :data:`_SLOW_S`."""
_SLOW_S = 1.0

State = Literal["new", "unproven", "working", "failed"]
Mode = Literal["closed", "direct", "reflected"]
Fault = Literal["silent", "one-way", "wrong cable", "unproven"]


@dataclass(frozen=True)
class Reading:
    """Counters of a path, ``received`` read before the others.

    ``time_us`` is the time at which ``sent`` was read, on the clock of the links: that of the
    emulator, which can be slower than ours, if there is one.
    ``received`` counts the frames that the receiving port has got. ``sent`` counts those that have
    left the sending port: frames in its queue have not. ``return_paused_us`` is how long the
    channel back has been paused so far; None if that is not known. It matters only for reflected
    probes.
    """

    received: int
    sent: int
    time_us: int
    return_paused_us: int | None = None


@dataclass
class Path:
    """A path; it is ``closed`` while a port is down, or its sender has no controller.

    ``sends`` is whether its sender can send probes: they also show where a wrong cable leads.

    States: ``new`` until the first probe arrives, ``unproven`` the same after the path was seen
    without a carrier: it may have another cable now.
    """

    sender: Port
    receiver: Port
    mode: Mode = "closed"
    sends: bool = False
    state: State = "new"
    opened_s: float = 0.0
    heard_s: float = 0.0
    probed_s: float = 0.0
    read_s: float = 0.0
    returning: int = 0
    suspected_s: float | None = None
    probes: int = 0
    """Probes sent since the first reading."""
    given: int = 0
    """Probes that the sender was given."""
    under_way: deque[int] = field(default_factory=deque)
    """Their numbers, since the last that arrived: they may wait in the sender."""
    crossed: int = 0
    """The highest number of a probe that has arrived at the right port."""
    crossed_s: float = 0.0
    """When the last one did."""
    in_a_row: int = 0
    """How many have, one soon after the other."""
    first: Reading | None = None
    last: Reading | None = None
    lost: Reading | None = None
    """The reading that was the first to show enough frames."""

    def open(self, mode: Mode, now_s: float) -> None:
        """Test the path in this way from now on."""
        if mode != self.mode:
            self.mode = mode
            self.opened_s = now_s
            self.hear(now_s)

    def hear(self, now_s: float) -> None:
        """Note a sign of life."""
        self.heard_s = now_s
        self.trust()

    def trust(self) -> None:
        """End the suspicion."""
        self.suspected_s = self.first = self.last = self.lost = None

    @property
    def unsent(self) -> int:
        """Probes that are still in the queue of the sending port, as far as is known."""
        if self.first is None or self.last is None:
            return 0
        return self.probes - (self.last.sent - self.first.sent)


@dataclass
class PathMonitor:
    """The probes of a fabric; times are the caller's monotonic clock, in seconds.

    ``interval_s`` is the time between two probes of a path. ``pauses`` is whether the priority of
    probes can be paused. ``flight_us`` is longer than any frame needs from port to port.
    """

    wiring: Wiring
    interval_s: float
    pauses: bool
    flight_us: float = 20_000
    paths: dict[Port, Path] = field(init=False)
    """By sending port."""
    changed: bool = False
    """Whether a probe has changed what is known; the caller resets it."""

    def __post_init__(self) -> None:
        ends = self.wiring.declared.items()
        self._least_interval_s = self.interval_s
        self.paths = {sender: Path(sender, receiver) for sender, receiver in ends}
        self._set_interval()

    def fit(self, state: State) -> None:
        """Go on with other links, after the wiring; ``state`` is that of paths that are new."""
        earlier = self.paths
        self.paths = {}
        for sender, receiver in self.wiring.declared.items():
            path = earlier.get(sender)
            if path is None or path.receiver != receiver:
                path = Path(sender, receiver, state=state)
            self.paths[sender] = path
        self._set_interval()

    def _set_interval(self) -> None:
        self.interval_s = max(self._least_interval_s, len(self.paths) / PROBES_PER_S)

    @property
    def tick_s(self) -> float:
        """The time between two calls of :meth:`observe` and :meth:`due`."""
        return self.interval_s / _FAST

    def observe(self, observed: Observed, now_s: float) -> None:
        """Open and close paths as connections and ports are now; suspect those that are late."""
        switches = observed.by_name
        for (name, port), path in self.paths.items():
            far_name, far_port = path.receiver
            sender, receiver = switches[name], switches[far_name]
            sender_down = sender.connected and not sender.is_up(port)
            down = sender_down or (receiver.connected and not receiver.is_up(far_port))
            path.sends = sender.connected and not sender_down
            if sender_down:
                self.wiring.unplug(path.sender)
            if down:
                path.state = "unproven"
            if down or not sender.connected or receiver.ports is None:
                path.mode = "closed"
            else:
                path.open("direct" if receiver.connected else "reflected", now_s)
            late = now_s - path.heard_s > _LATE * self.interval_s
            if path.mode == "closed":
                path.trust()
            elif late and path.suspected_s is None and path.state != "failed":
                path.suspected_s, path.probes = now_s, 0

    def due(self, now_s: float, number: int) -> Iterator[Path]:
        """Yield the paths that send a probe with this number now; they count as probed."""
        for path in self.paths.values():
            if not path.sends:
                continue
            since = now_s - path.probed_s
            if since >= self._pause_s(path, now_s) - self.tick_s / 2:
                path.probed_s = now_s
                path.probes += 1
                path.given += 1
                if path.state == "failed":
                    path.under_way.clear()
                path.under_way.append(number)
                yield path

    def _pause_s(self, path: Path, now_s: float) -> float:
        if path.unsent >= _UNSENT:
            return max(_SLOW_S, self.interval_s)
        since = path.suspected_s
        if since is None and path.state in ("new", "unproven"):
            since = path.opened_s
        fast = since is not None and now_s - since < _FAST_FOR * self.interval_s
        return self.tick_s if fast or path.returning else self.interval_s

    def arrived(
        self, sender: Port, receiver: Port, number: int, *, reflected: bool, now_s: float
    ) -> None:
        """Take note of a probe; ``receiver`` is where the controller got it."""
        path = self.paths.get(sender)
        if path is None:
            return
        while path.under_way and path.under_way[0] <= number:
            path.under_way.popleft()
        wrong, state = self.wiring.wrong_ports, path.state
        self._arrived(path, receiver, number, reflected=reflected, now_s=now_s)
        if state != path.state or wrong != self.wiring.wrong_ports:
            self.changed = True

    def _arrived(
        self, path: Path, receiver: Port, number: int, *, reflected: bool, now_s: float
    ) -> None:
        sender = path.sender
        if reflected:
            # Whoever has sent it back: the switch at the other end holds our rules.
            if receiver == sender and path.mode == "reflected":
                self._crosses(path, number, now_s)
                if path.state == "working":
                    self.paths[path.receiver].state = "working"
        elif self.wiring.see(sender, receiver):
            self._crosses(path, number, now_s)
        else:
            for port in (sender, receiver):
                if (wrong := self.paths.get(port)) is not None:
                    wrong.state = "unproven"
                    self.paths[wrong.receiver].state = "unproven"

    def _crosses(self, path: Path, number: int, now_s: float) -> None:
        is_soon = now_s - path.crossed_s < _LATE * self.interval_s
        path.in_a_row = path.in_a_row + 1 if is_soon else 1
        path.crossed, path.crossed_s = max(path.crossed, number), now_s
        self._works(path, now_s)

    def _works(self, path: Path, now_s: float) -> None:
        since = now_s - path.heard_s
        path.hear(now_s)
        if path.state == "failed":
            path.returning = path.returning + 1 if since < _LATE * self.interval_s else 1
            if path.returning < RETURNING_PROBES:
                return
        path.state, path.returning = "working", 0

    def suspects(self, now_s: float) -> list[Path]:
        """Return the paths of which readings are needed now, the longest unread ones first.

        The longer a path has been suspected, the less often it is read.
        """
        suspects = [
            path
            for path in self.paths.values()
            if path.suspected_s is not None
            and now_s - path.read_s >= min(_SLOW_S, (now_s - path.suspected_s) / 8)
        ]
        return sorted(suspects, key=lambda path: path.read_s)

    def read(self, asked: Iterable[Path], readings: Mapping[Port, Reading], now_s: float) -> None:
        """Take counters of suspected paths, by sending port; some that were asked may have none."""
        for path in asked:
            path.read_s = now_s
            reading = readings.get(path.sender)
            if path.suspected_s is None or reading is None:
                continue
            if path.first is None or path.last is None:
                path.first = path.last = reading
                path.probes = 0
            elif reading.received != path.first.received:
                # No proof of the right cable, but frames do arrive.
                path.hear(now_s)
            else:
                # Frames that were sent before the last reading can have arrived by now.
                before, path.last = path.last, reading
                if path.lost is None and before.sent - path.first.sent >= LOST_FRAMES:
                    path.lost = before
                if path.lost is None or before.time_us - path.lost.time_us < self.flight_us:
                    continue
                if self._must_return(path):
                    path.state, path.returning = "failed", 0
                    path.trust()

    def _must_return(self, path: Path) -> bool:
        """Return whether a lost probe cannot merely wait in the switch that sends it back."""
        if path.mode == "direct" or not self.pauses:
            return True
        if path.first is None or path.last is None or path.last.return_paused_us is None:
            return False
        return path.last.return_paused_us == path.first.return_paused_us

    def probes_given(self) -> dict[Port, tuple[int, int]]:
        """Return the probes that each port was given, and those that may not have left it."""
        return {port: (path.given, len(path.under_way)) for port, path in self.paths.items()}

    def crossed(self) -> dict[Port, int]:
        """Return the number of the latest probe of each port that has crossed its link."""
        return {port: path.crossed for port, path in self.paths.items()}

    def proves(self, name: str, first: int | None) -> bool | None:
        """Return whether probes show that a switch has one of its cables.

        ``first`` is the number of the first probe that its connection was given; None: there is
        none yet. Those count that have come to a neighbour since: earlier ones may have been on
        their way from another switch that claims to be this one. None: nobody can tell, because no
        neighbour is connected, or no link has a carrier.
        """
        paths = [
            path for path in self.paths.values() if path.mode == "direct" and path.sender[0] == name
        ]
        if not paths:
            return None
        return first is not None and any(path.crossed >= first for path in paths)

    def settled(self, ends: Iterable[Port]) -> bool:
        """Return whether probes show where the cables at these ports lead, if they can.

        Those that have failed count as well.
        """
        wrong, arriving = self.wiring.wrong_ports, (self.wiring.declared[end] for end in ends)
        return all(
            path.mode != "direct" or path.state in ("working", "failed") or path.receiver in wrong
            for path in map(self.paths.__getitem__, arriving)
        )

    def faults(self) -> dict[str, Fault]:
        """Return what is wrong with which link, by the link's name, although it has a carrier."""
        faults: dict[str, Fault] = dict.fromkeys(self.wiring.links, "wrong cable")
        for port, path in self.paths.items():
            if path.state not in ("failed", "unproven"):
                continue
            name = self.wiring.link_at(port)
            if name in faults and faults[name] != "unproven":
                continue
            back = self.paths[path.receiver]
            if path.state == "failed":
                both = back.state == "failed" or "reflected" in (path.mode, back.mode)
                faults[name] = "silent" if both else "one-way"
            elif path.mode != "closed" and back.state != "failed":
                faults[name] = "unproven"
        return faults

    def lines(self) -> list[str]:
        """Return one line for each fault."""
        lines = []
        for name, fault in sorted(self.faults().items()):
            if fault == "silent":
                lines.append(f"link {name} loses all frames although it has a carrier (silent)")
            elif fault == "one-way":
                lines.append(f"link {name} loses all frames from {self._lossy(name)} (one-way)")
            elif fault == "unproven":
                lines.append(f"link {name} has a carrier again, but probes have not crossed it yet")
        return lines + self.wiring.lines()

    def _lossy(self, name: str) -> str:
        failed = (port for port, path in self.paths.items() if path.state == "failed")
        return " and ".join(port_text(port) for port in failed if self.wiring.link_at(port) == name)

    def reflecting(self) -> frozenset[str]:
        """Return the switches without a controller that send probes back."""
        return frozenset(
            path.receiver[0]
            for path in self.paths.values()
            if path.mode == "reflected"
            and path.heard_s > path.opened_s
            and path.suspected_s is None
            and path.state == "working"
        )
