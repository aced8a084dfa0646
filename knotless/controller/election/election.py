"""The election of the active one of several controllers, by OpenFlow's roles at switches. Pure.

Every controller sends role requests to every switch. A switch has at most one master, the only one
that may change its rules, and refuses requests with a generation id older than the last one
(OpenFlow 1.3.4, section 6.3.4). A generation id is, from its highest bits, the term, the number of
the controller, and a beat, which the active controller counts up all the time. So the switches are
all that controllers have in common: they need not see each other.

- A standby controller watches the generation ids. When those of a majority of all switches have
  not changed for :attr:`Times.patience_s`, it becomes a candidate with a term above all that it
  has seen, and asks all switches to make it master. Only answers count, and each for little more
  than the interval between questions: a switch that is slow to answer may be as slow with the
  requests of the active controller.
- A candidate becomes active when it is master of all switches that are not dead at the same time,
  and of a majority. No other controller can then change a rule of any switch that carries frames.
- A switch that restarts forgets the generation id, and would obey anyone. So an active controller
  claims a new connection only after a majority has confirmed it since then.
- Whoever learns of a later term at any switch, or has not been confirmed by a majority of switches
  for :attr:`Times.lease_s`, is on standby from then on.
- Time is that of the controller itself: of a gap in which it did not run, a part counts. What
  switches have answered meanwhile is still to be read.

docs/decisions/several-controllers.md has the argument.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["equal", "master", "slave"]
"""The role of a controller at a switch."""
State = Literal["standby", "candidate", "active"]
_BEAT_BITS = 32
_NUMBER_BITS = 8
_PER_SECOND = 400.0
"""Switches that are asked in a second, at most; more of them are asked less often."""
_COUNTED = 1.25
"""Intervals that the time between two answers of a switch counts at most."""
_LONGEST_GAP = 2.0
"""Intervals that the time between two calls counts at most."""


@dataclass(frozen=True)
class Times:
    """Times for which controllers wait, in seconds.

    All switches are asked every ``interval_s``. A generation id that has not changed for
    ``patience_s`` belongs to a controller that is gone. An active controller without confirmation
    for ``lease_s`` stops: it is longer than switches on a busy machine take to answer, and shorter
    than a candidacy, with the patience before it, that not all switches accept. A candidate that no
    further switch accepts for ``candidacy_s`` gives up.
    """

    interval_s: float = 0.2
    patience_s: float = 1.4
    lease_s: float = 4.0
    candidacy_s: float = 3.0

    @classmethod
    def for_switches(cls, switches: int) -> Times:
        """Return the times for a fabric of so many switches."""
        factor = max(1.0, switches / _PER_SECOND / cls.interval_s)
        times = (cls.interval_s, cls.patience_s, cls.lease_s, cls.candidacy_s)
        return cls(*(seconds * factor for seconds in times))


@dataclass(frozen=True, order=True)
class Request:
    """A role request to a switch; without ``role``, the switch only answers what it is now."""

    dpid: int
    role: Role | None
    generation: int = 0


@dataclass
class _Switch:
    """A connected switch.

    ``generation`` is the last one that it reported, None if nobody has been its master,
    ``answered_s`` when, and ``idle_s`` for how long its answers have shown that it does not change.
    ``confirmed_s`` is when the last request was sent that the
    switch answered by making us master in this term, and ``held_s`` when the first such answer came
    on this connection; None if we are not master. ``is_claimed``: we may ask to be it.
    """

    connected_s: float
    is_claimed: bool
    role: Role = "equal"
    answered_s: float | None = None
    idle_s: float = 0.0
    generation: int | None = None
    confirmed_s: float | None = None
    held_s: float | None = None


@dataclass
class Election:
    """The knowledge and the actions of one controller; ``clock_s`` is the caller's monotonic clock.

    ``number`` is that of this controller, of ``count`` in all, and ``dpids`` are all switches of
    the fabric. ``why`` is the reason for which it was last put on standby. Only messages of the
    connection that was last passed to :meth:`connected` may be passed on.
    """

    number: int
    count: int
    dpids: frozenset[int]
    times: Times
    why: str = ""
    state: State = "standby"
    term: int = 0
    """Our own term while candidate or active, else the last one seen."""
    is_complete: bool = False
    """Whether this controller has been master of all switches that are not dead since it is active.
    Without that, a switch that it cannot reach may still obey another."""
    _switches: dict[int, _Switch] = field(default_factory=dict)
    _clock_s: float | None = None
    """The last reading of the caller's clock."""
    _now_s: float = 0.0
    """The time of this controller."""
    _beat: int = 0
    _sent_s: dict[int, float] = field(default_factory=dict)
    """Beat -> time at which it was sent."""
    _since_s: float = 0.0
    """Time at which the state began, or of a candidate's last success."""
    _asked_again_s: float | None = None
    _gave_up: bool = False
    """Whether our last candidacy failed for lack of switches, and nobody else has led since."""

    # --- what is known -----------------------------------------------------------------------

    @property
    def majority(self) -> int:
        """The number of switches of which no two controllers can be master at once."""
        return len(self.dpids) // 2 + 1

    @property
    def active(self) -> int | None:
        """The number of the controller that the highest generation id names; None: none yet."""
        if self.state == "active":
            return self.number
        generations = self._generations()
        return (max(generations) >> _BEAT_BITS) % (1 << _NUMBER_BITS) if generations else None

    def may_change(self, dpid: int, clock_s: float) -> bool:
        """Tell whether this controller may change the rules of a switch now."""
        now_s = self._own_time(clock_s)
        self._check_lease(now_s)
        switch = self._switches.get(dpid)
        return self.state == "active" and switch is not None and switch.confirmed_s is not None

    def is_master(self, dpid: int) -> bool:
        """Tell whether a switch has made us its master, in this term and on this connection."""
        switch = self._switches.get(dpid)
        return switch is not None and switch.confirmed_s is not None

    # --- events ------------------------------------------------------------------------------

    def connected(self, dpid: int, clock_s: float) -> list[Request]:
        """Take a new connection of a switch of the fabric."""
        now_s = self._own_time(clock_s)
        self._check_lease(now_s)
        is_candidate = self.state == "candidate"
        self._switches[dpid] = _Switch(now_s, is_candidate)
        return [Request(dpid, "master", self._generation) if is_candidate else Request(dpid, None)]

    def fit(self, dpids: frozenset[int]) -> None:
        """Go on with other switches; majorities of both must have a switch in common."""
        for dpid in self.dpids - dpids:
            self.disconnected(dpid)
        self.dpids = dpids

    def disconnected(self, dpid: int) -> None:
        """Take the end of a connection: whatever the switch was to us is over."""
        self._switches.pop(dpid, None)

    def answered(
        self, dpid: int, role: Role, generation: int | None, clock_s: float
    ) -> list[Request]:
        """Take the answer to a role request; ``generation`` None: the switch knows of none.

        Return what to ask next: on standby, we become a slave, so that nothing can be written.
        """
        switch = self._switches.get(dpid)
        if switch is None:
            return []
        now_s = self._own_time(clock_s)
        if switch.answered_s is None or generation != switch.generation:
            switch.idle_s = 0.0
        else:
            switch.idle_s += min(now_s - switch.answered_s, _COUNTED * self.times.interval_s)
        switch.answered_s = now_s
        switch.role, switch.generation = role, generation
        if generation is None:
            return []
        key, own = generation >> _BEAT_BITS, self._generation >> _BEAT_BITS
        if self.state == "standby":
            self.term = max(self.term, key >> _NUMBER_BITS)
            if key % (1 << _NUMBER_BITS) != self.number:
                self._gave_up = False
            return [] if role == "slave" else [Request(dpid, "slave", generation)]
        if key > own:
            self.lost(clock_s, f"controller {key % (1 << _NUMBER_BITS)} is in a later term")
        elif key == own and role == "master":
            if switch.held_s is None:
                switch.held_s = now_s
                self._since_s = now_s if self.state == "candidate" else self._since_s
            sent_s = self._sent_s.get(generation % (1 << _BEAT_BITS))
            if sent_s is not None:
                switch.confirmed_s = max(sent_s, switch.confirmed_s or sent_s)
        return []

    def refused(self, dpid: int, clock_s: float) -> None:
        """Take the refusal of a role request: its generation id was older than the last one."""
        if self.state != "standby" and dpid in self._switches:
            self.lost(clock_s, "a switch obeys another controller")

    def lost(self, clock_s: float, why: str) -> None:
        """Go on standby."""
        self._step_down(self._own_time(clock_s), why)

    def _step_down(self, now_s: float, why: str) -> None:
        self.why = why
        self.state, self.is_complete, self._since_s = "standby", False, now_s
        for switch in self._switches.values():
            switch.confirmed_s, switch.held_s, switch.answered_s = None, None, None

    def tick(self, clock_s: float, dead: Collection[int] = ()) -> list[Request]:
        """Return the requests to send every ``interval_s``; ``dead`` are the dead switches."""
        now_s = self._own_time(clock_s)
        self._check_lease(now_s)
        if self.state == "standby":
            if not self._is_time(now_s):
                return self._questions()
            self._stand(now_s)
        elif self.state == "candidate" and now_s - self._since_s > self.times.candidacy_s:
            held = sum(switch.held_s is not None for switch in self._switches.values())
            enough = self._gave_up and held >= self.majority
            self._gave_up = True
            if enough:
                # Nobody reaches more switches; those that are left out wait.
                self.state = "active"
            else:
                self._step_down(now_s, "not all switches can be reached")
                return self._questions()
        self.settle(clock_s, dead)
        return self._ask(now_s)

    def settle(self, clock_s: float, dead: Collection[int] = ()) -> list[Request]:
        """Become active, or complete, if enough switches have accepted; return what to ask."""
        now_s = self._own_time(clock_s)
        held = {
            dpid: switch.held_s
            for dpid, switch in self._switches.items()
            if switch.held_s is not None
        }
        alive = self.dpids - set(dead)
        if self.state == "standby" or len(held) < self.majority or not alive <= held.keys():
            return []
        last_s = max(held.values())
        times = [self._switches[dpid].confirmed_s for dpid in alive]
        if all(sent_s is not None and sent_s >= last_s for sent_s in times):
            # All have confirmed after the last one accepted: we were master of all at that time.
            if self._has_lease(now_s):
                self.state, self.is_complete, self._gave_up = "active", True, False
        elif self._asked_again_s != last_s:
            self._asked_again_s = last_s
            return self._ask(now_s)
        return []

    # --- inside ------------------------------------------------------------------------------

    def _own_time(self, clock_s: float) -> float:
        """Return the time of this controller, which goes on with the caller's clock."""
        if self._clock_s is None:
            self._now_s = clock_s
        else:
            elapsed_s = clock_s - self._clock_s
            self._now_s += min(elapsed_s, _LONGEST_GAP * self.times.interval_s)
        self._clock_s = clock_s
        return self._now_s

    @property
    def _generation(self) -> int:
        return (self.term << _NUMBER_BITS | self.number) << _BEAT_BITS | self._beat

    def _generations(self) -> list[int]:
        """Return the generation ids that switches have reported."""
        reported = (switch.generation for switch in self._switches.values())
        return [generation for generation in reported if generation is not None]

    def _confirmations(self) -> list[float]:
        """Return when requests were sent that switches have confirmed."""
        times = (switch.confirmed_s for switch in self._switches.values())
        return [sent_s for sent_s in times if sent_s is not None]

    def _ask(self, now_s: float) -> list[Request]:
        """Return the requests of the next beat."""
        times = sorted(self._confirmations())
        for switch in self._switches.values():
            later = len(times) - bisect_right(times, switch.connected_s)
            switch.is_claimed = switch.is_claimed or later >= self.majority
        self._beat += 1
        self._sent_s[self._beat] = now_s
        self._sent_s.pop(self._beat - 64, None)
        return [
            Request(dpid, "master", self._generation) if switch.is_claimed else Request(dpid, None)
            for dpid, switch in sorted(self._switches.items())
        ]

    def _has_lease(self, now_s: float) -> bool:
        """Return whether a majority confirms requests that were sent within the lease."""
        recent = (now_s - sent_s <= self.times.lease_s for sent_s in self._confirmations())
        return sum(recent) >= self.majority

    def _check_lease(self, now_s: float) -> None:
        if self.state == "active" and not self._has_lease(now_s):
            self._step_down(now_s, f"most switches have not answered for {self.times.lease_s:g} s")

    def _is_time(self, now_s: float) -> bool:
        """Return whether a majority of switches has had no active controller for long enough.

        The next one in turn is the first to stand; so that they do not all do, the others wait
        longer. So does one that could not reach all switches, so that another can try.
        """
        last = -1 if self.active is None else self.active
        stagger = (self.number - last - 1) % self.count * 2 * self.times.interval_s
        if now_s - self._since_s < stagger + self._gave_up * 2 * self.times.candidacy_s:
            return False
        patience_s = self.times.patience_s + stagger
        idle = [
            switch
            for switch in self._switches.values()
            if switch.answered_s is not None
            and switch.idle_s >= (stagger if switch.generation is None else patience_s)
        ]
        return len(idle) >= self.majority

    def _stand(self, now_s: float) -> None:
        generations = self._generations()
        last = max(generations, default=0) >> (_BEAT_BITS + _NUMBER_BITS)
        self.term = max(self.term, last) + 1
        self.state, self._since_s, self._beat, self._sent_s = "candidate", now_s, 0, {}
        for switch in self._switches.values():
            switch.is_claimed = True

    def _questions(self) -> list[Request]:
        """Ask all switches what they know."""
        return [Request(dpid, None) for dpid in sorted(self._switches)]
