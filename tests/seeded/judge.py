"""Judges what switches hold, at every change: cycles, loops, and pairs that are not delivered.

Frames are followed through the sequence of the states that the fabric really had since the oldest
frame that is still in a channel was sent: at each switch a frame meets the entries of any moment
from then on, never of an earlier one than before. So what is judged is what can happen, not what a
controller believes, and not every mixture either. Nothing here is shared with the proofs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric
from tests.seeded.forwarding import Forwarding, Header, sent
from tests.seeded.second_opinion import SecondOpinion

if TYPE_CHECKING:
    from tests.seeded.world import World

End = tuple[str, int]
Pair = tuple[str, str]
Channel = tuple[str, int, int]
"""A sending switch and port, and a priority; 0 if all share the buffer."""
EVERYBODY = "all"
REACTION_S = 0.05
"""A change of rules may not take into account what has happened this long before."""
_ASKED_EVERY = {"ring,4": 1, "torus,3,3": 8}
_ASKED_EVERY_OTHER = 40
"""How seldom the second opinion is asked about states: on a torus it took a quarter of a run."""
_NOT_TRACED = ("source_check", "protection")
"""Options whose rules the second opinion does not follow: IP addresses, ports of groups."""
_TOUCHED = 0
"""The port, of no link, that is down at a switch that others have changed."""


@dataclass(frozen=True)
class State:
    """What all switches hold, and the ports of links that carry nothing."""

    number: int
    author: str
    at_s: float
    held: Mapping[str, Forwarding]
    down: frozenset[End]

    def here(self, switch: str) -> tuple[Forwarding, frozenset[int]]:
        """Return what decides about frames at one switch."""
        return self.held[switch], frozenset(port for name, port in self.down if name == switch)


@dataclass
class Outcome:
    """What can happen to frames; pairs are of hosts, or of a host and everybody."""

    delivered: set[Pair] = field(default_factory=set)
    """Pairs of which some frame arrives; of frames to everybody, with each receiver."""
    dropped: dict[Pair, str] = field(default_factory=dict)
    """Pairs of which a switch other than the first can drop a frame, and where."""
    cut: set[Pair] = field(default_factory=set)
    """Pairs of which a frame can be sent to a link that carries nothing."""
    wrong: dict[Pair, str] = field(default_factory=dict)
    """Pairs of which a frame can arrive where it should not."""
    waits: dict[Channel, dict[Channel, None]] = field(default_factory=dict)

    def cycle(self) -> tuple[Channel, ...]:
        """Return channels that can wait for each other in a circle; none: there are none."""
        state: dict[Channel, int] = {}
        for start in self.waits:
            if start in state:
                continue
            path: list[Channel] = []
            stack = [(start, iter(self.waits.get(start, ())))]
            state[start] = 1
            path.append(start)
            while stack:
                node, left = stack[-1]
                following = next(left, None)
                if following is None:
                    stack.pop()
                    path.pop()
                    state[node] = 2
                elif state.get(following) == 1:
                    return tuple(path[path.index(following) :])
                elif following not in state:
                    state[following] = 1
                    path.append(following)
                    stack.append((following, iter(self.waits.get(following, ()))))
        return ()


class Explorer:
    """Follows frames through sequences of states."""

    def __init__(
        self, fabric: Fabric, *, shares_buffer: bool, tags: HostTags | None = None
    ) -> None:
        self._fabric, self._shares, self._tags = fabric, shares_buffer, tags
        self._peers: dict[End, End] = {}
        for link in fabric.links:
            a, b = (link.a, link.a_port), (link.b, link.b_port)
            self._peers[a], self._peers[b] = b, a
        self._hosts = {(host.switch, host.port): host.name for host in fabric.hosts}
        self._known: dict[tuple[object, ...], Outcome] = {}

    def outcome(self, states: Sequence[State], since: Mapping[str, int] | None = None) -> Outcome:
        """Return what can happen to frames that are sent during these states.

        ``since`` has for each host the number of the first state in which it may have sent what is
        still there; None: it may have been the first state.
        """
        first, last = states[0].number, states[-1].number
        starts = {
            host.name: 0 if since is None else max(0, since.get(host.name, last) - first)
            for host in self._fabric.hosts
        }
        parts = ((*map(id, state.held.values()), state.down) for state in states)
        key = (tuple(starts.values()), *parts)
        if key not in self._known:
            self._known[key] = self._explore(states, starts)
        return self._known[key]

    def _explore(self, states: Sequence[State], starts: Mapping[str, int]) -> Outcome:
        outcome = Outcome()
        phases = {
            switch.name: _phases([state.here(switch.name) for state in states])
            for switch in self._fabric.switches
        }
        for sender in self._fabric.hosts:
            frames = [
                (host.name, sent(sender, host, self._tags))
                for host in self._fabric.hosts
                if host is not sender
            ]
            frames.append((EVERYBODY, sent(sender, None, self._tags)))
            for name, header in frames:
                pair = (sender.name, name)
                place = (sender.switch, sender.port)
                self._follow(outcome, phases, pair, (place, header, starts[sender.name], None))
        return outcome

    def _follow(
        self,
        outcome: Outcome,
        phases: Mapping[str, Sequence[tuple[int, Forwarding, frozenset[int]]]],
        pair: Pair,
        first: tuple[End, Header, int, Channel | None],
    ) -> None:
        seen, waiting = {first}, [first]
        while waiting:
            place, header, number, channel = waiting.pop()
            switch, in_port = place
            met = _from(phases[switch], number)
            for index, (begins, forwarding, down) in enumerate(met):
                # What waits for a port is dropped when that loses its carrier.
                flushed = frozenset[int]().union(*(later for _, _, later in met[index:]))
                choices = forwarding.choices(in_port, header)
                if channel is not None and not all(choices):
                    outcome.dropped.setdefault(pair, f"{switch} port {in_port}")
                for copy in dict.fromkeys(chain.from_iterable(choices)):
                    end = (switch, copy.port)
                    if end in self._hosts:
                        self._arrive(outcome, pair, self._hosts[end], copy.header)
                    elif end not in self._peers or copy.port in down:
                        outcome.cut.add(pair)
                    else:
                        held = (*end, 0 if self._shares else copy.header.pcp)
                        outcome.waits.setdefault(held, {})
                        if channel is not None and copy.port not in flushed:
                            outcome.waits[channel][held] = None
                        following = (self._peers[end], copy.header, max(begins, number), held)
                        if following not in seen:
                            seen.add(following)
                            waiting.append(following)

    @staticmethod
    def _arrive(outcome: Outcome, pair: Pair, host: str, header: Header) -> None:
        source, destination = pair
        if header.vlan is not None:
            outcome.wrong[pair] = f"arrives at {host} with a tag"
        elif destination == EVERYBODY and host == source:
            outcome.wrong[pair] = "comes back to its sender"
        elif destination == EVERYBODY:
            outcome.delivered.add((source, f"{EVERYBODY}: {host}"))
        elif destination != host:
            outcome.wrong[pair] = f"arrives at {host}"
        else:
            outcome.delivered.add(pair)


def _phases(
    here: Iterable[tuple[Forwarding, frozenset[int]]],
) -> list[tuple[int, Forwarding, frozenset[int]]]:
    """Return from which state on a switch does what."""
    phases: list[tuple[int, Forwarding, frozenset[int]]] = []
    for number, (forwarding, down) in enumerate(here):
        if not phases or phases[-1][1] is not forwarding or phases[-1][2] != down:
            phases.append((number, forwarding, down))
    return phases


def _from(
    phases: Sequence[tuple[int, Forwarding, frozenset[int]]], number: int
) -> Sequence[tuple[int, Forwarding, frozenset[int]]]:
    """Return what a frame can meet that has met nothing older than state ``number``."""
    first = max(index for index, phase in enumerate(phases) if phase[0] <= number)
    return phases[first:]


def _hosts_of(pair: Pair) -> tuple[str, str]:
    """Return the sender and the receiver, also of a frame to everybody."""
    return pair[0], pair[1].removeprefix(f"{EVERYBODY}: ")


def _replaces(before: State, now: State) -> bool:
    """Return whether a switch that forwarded frames does something else now."""
    return any(
        now.held[name] is not forwarding and forwarding.own
        for name, forwarding in before.held.items()
    )


class Judge:
    """Keeps the states that still matter, and reports what must not be."""

    def __init__(self, world: World, *, shares_buffer: bool) -> None:
        self._world = world
        self.explorer = Explorer(world.fabric, shares_buffer=shares_buffer, tags=world.tags)
        self.number: int = 0
        self.states: list[State] = []
        self.second = SecondOpinion(world.fabric, shares_buffer=shares_buffer, tags=world.tags)
        self._asked_every = _ASKED_EVERY.get(world.setting.fabric, _ASKED_EVERY_OTHER)
        self.judged = 0
        self._has_cycle = False
        self._dropping: set[Pair] = set()
        self._step: object = None
        self._base: State | None = None
        """The state before the first switch took the rules of the present step.

        A switch that has lost its power since does in it what it does now.
        """
        self._began_touched = False
        """Whether others had changed a switch, which nobody had put right, before that."""
        self._doubted = self._doubted_before = frozenset[End]()
        """The ports of links that counted as failed at the last write, and before this step."""
        self._doubted_first = frozenset[End]()
        """The same at the first write of this step."""
        self._last_held: dict[str, Forwarding] = {}
        """What each switch held when it last had power."""
        self._written = 0
        """The number of the state that rules of a controller have made in place of older ones."""

    def _now(self, author: str) -> State:
        world = self._world
        held = {
            name: switch.forwarding if switch.is_on and not switch.is_touched else world.nothing
            for name, switch in world.switches.items()
        }
        on = {name: held[name] for name in held if world.switches[name].is_on}
        self._last_held = {**self._last_held, **on}
        # What others have made of a switch is not to blame on a controller: until that is put
        # right, it counts as one that drops all that comes.
        touched = {(name, _TOUCHED) for name, switch in world.switches.items() if switch.is_touched}
        down = frozenset(
            end
            for link in world.network.links.values()
            if not world.network.carries(link)
            for end in link.ends
        )
        down |= touched
        return State(self.number, author, world.hub.now_s, held, down)

    def changed(self, author: str) -> None:
        """Judge the state that the fabric has now; ``author`` has caused it."""
        before, last_held = self.states[-1] if self.states else None, self._last_held
        self.number += 1
        now = self._now(author)
        if before is not None and (before.held, before.down) == (now.held, now.down):
            self.number -= 1
            return
        self.states.append(now)
        self._trim()
        if not self._world.setting.judged:
            return
        self.judged += 1
        writes = author.startswith("write")
        if writes and before is not None and _replaces(before, now):
            self._written = self.number
        if writes and before is not None:
            self._see_step(before)
        mixed = self.explorer.outcome(self.states, self._since())
        cycle = mixed.cycle()
        self._ask_second(now, mixed)
        excused = self._replaces_at_once() if writes else self._returns_unread(author, cycle)
        if cycle and not self._has_cycle and not excused:
            names = " -> ".join(f"{name}:{port}/{pcp}" for name, port, pcp in cycle)
            self._world.violated("cycle", author, f"frames can wait in a circle: {names}")
        self._has_cycle = bool(cycle)
        if writes and before is not None:
            self._judge_write(replace(self._base or before, down=now.down), now, author)
        elif before is not None and self._base is not None:
            changed = {
                name: held for name, held in now.held.items() if held is not before.held[name]
            }
            switches = self._world.switches
            if any(
                switches[name].is_on and changed[name] is not last_held[name] for name in changed
            ):
                self._step = None  # rules are gone that no step has removed
            else:
                # It has no power, or comes back with its rules: the step goes on.
                self._base = replace(self._base, held={**self._base.held, **changed})

    def _ask_second(self, now: State, mixed: Outcome) -> None:
        """Compare with the tracer of the proofs' tests: not always, but on the smallest fabric."""
        is_known = not any(option in self._world.setting.options for option in _NOT_TRACED)
        if not is_known or self.number % self._asked_every:
            return
        alone = self.second.of_state(now, self.explorer.outcome([now]))
        if difference := alone or self.second.of_sequence(self.states, mixed):
            self._world.violated("opinions", now.author, f"the second opinion: {difference}")

    def _see_step(self, before: State) -> None:
        """Take note of the step whose rules are written now."""
        step, doubted = self._world.step(), self._world.doubted_ends()
        if step != self._step:
            self._step, self._base = step, before
            self._began_touched = any(port == _TOUCHED for _, port in before.down)
            self._doubted_before, self._doubted_first = self._doubted, doubted
        self._doubted = doubted

    def _replaces_at_once(self) -> bool:
        """Return whether all is replaced in one step: what others have left can deadlock."""
        return self._began_touched and self._world.has_no_steps()

    def _returns_unread(self, author: str, cycle: Iterable[Channel]) -> bool:
        """Return whether older rules of a switch that was off while all was replaced close it."""
        name = author.removeprefix("return of ")
        is_in_it = any(each == name for each, *_ in cycle)
        return name != author and is_in_it and self._world.has_no_steps()

    def _judge_write(self, before: State, now: State, author: str) -> None:
        allowed = self._world.dropped_pairs()
        # Whoever crosses a link that counts as failed is lost already, in the eyes of a controller.
        doubted = self._doubted
        was, is_now = (
            self.explorer.outcome([replace(state, down=state.down | ends)])
            for state, ends in ((before, doubted | self._doubted_before), (now, doubted))
        )
        lost = was.delivered - is_now.delivered - was.dropped.keys() - allowed
        if lost:
            # What was sent before a failure was known is not to blame for it, nor is a step that
            # began before.
            since_s = min(before.at_s, now.at_s - REACTION_S)
            failed = now.down | doubted & self._doubted_first
            recent = self._world.network.cut_since(since_s)
            off = {name for name, _ in recent if not self._world.switches[name].is_on}
            held = {**now.held, **{name: self._last_held[name] for name in off}}
            before_that = replace(now, held=held, down=failed - recent)
            lost -= self.explorer.outcome([before_that]).delivered
        if self._replaces_at_once():
            lost = set()
        lost = {pair for pair in lost if not self._is_lost_at_touched(is_now, pair)}
        lost = {pair for pair in lost if all(map(self._world.is_served, _hosts_of(pair)))}
        for pair in sorted(lost):
            self._world.violated("lost", author, f"{pair[0]} -> {pair[1]} is not delivered")
        # A frame that was on its way when a link was cut may be dropped: the cut has lost others.
        cuts = [at for at, state in enumerate(self.states) if state.down != now.down]
        # What has crossed a link that counted as failed is lost already, as that is.
        whole = self._since(but_crossed_failed=True)
        unhurt = self.explorer.outcome(self.states[cuts[-1] + 1 if cuts else 0 :], whole)
        for pair in sorted(unhurt.dropped.keys() - self._dropping - allowed):
            # Of several paths, frames on one that was cut were lost already.
            both = was.delivered & is_now.delivered - was.dropped.keys() - was.cut
            if self._is_lost_at_touched(unhurt, pair) or self._replaces_at_once():
                continue
            if pair[1] != EVERYBODY and pair in both:
                where = unhurt.dropped[pair]
                self._world.violated("drops", author, f"{pair[0]} -> {pair[1]} drops at {where}")
        self._dropping = set(unhurt.dropped)
        for pair in sorted(is_now.wrong.keys() - was.wrong.keys()):
            if pair[1] != EVERYBODY:
                text = f"{pair[0]} -> {pair[1]} {is_now.wrong[pair]}"
                self._world.violated("wrong", author, text)

    def _is_lost_at_touched(self, outcome: Outcome, pair: Pair) -> bool:
        """Return whether frames are lost at a switch that others have changed."""
        source, destination = pair
        sent_to = EVERYBODY if destination.startswith(EVERYBODY) else destination
        switch = outcome.dropped.get((source, sent_to), "").partition(" ")[0]
        return switch in self._world.switches and self._world.switches[switch].is_touched

    def _since(self, *, but_crossed_failed: bool = False) -> dict[str, int]:
        """Return the number of the state in which each host sent its oldest frame that is there.

        Perhaps but those that were sent to a link that counted as failed.
        """
        since: dict[str, int] = {}
        for frame in self._world.network.frames:
            if frame.has_crossed_failed and but_crossed_failed:
                continue
            since[frame.source] = min(frame.state, since.get(frame.source, frame.state))
        return since

    def quiescent(self, author: str) -> None:
        """Judge that a controller takes the frames for gone that were sent before its last rules.

        What is on a link that counts as failed, or was sent to one, is lost in its eyes.
        """
        doubted = self._world.doubted_ends()
        old = (
            (frame, link)
            for frame, link in self._world.network.frames.items()
            if frame.state < self._written
            and not (frame.has_crossed_failed or doubted & {*link.ends})
        )
        for frame, link in old:
            text = f"a frame of {frame.source} that older rules have sent is on {link.name}"
            self._world.violated("early", author, text)
            return

    def left(self) -> None:
        """Take note that a frame has left its channel."""
        self._trim()

    def _trim(self) -> None:
        oldest = self._world.network.oldest
        first = self.states[-1].number if oldest is None and self.states else (oldest or 0)
        while len(self.states) > 1 and self.states[1].number <= first:
            del self.states[0]

    def undelivered(self) -> set[Pair]:
        """Return the pairs of hosts that the present state does not deliver.

        Whoever has written them: what is blamed on nobody (:meth:`_now`) is delivered or not.
        """
        now, switches = self._now("end"), self._world.switches
        held = {name: switches[name].forwarding for name in now.held if switches[name].is_on}
        deaf = dict.fromkeys(self._world.deaf(), self._world.nothing)
        outcome = self.explorer.outcome([replace(now, held={**now.held, **held, **deaf})])
        names = [host.name for host in self._world.served_fabric.hosts]
        others = [(a, b) for a in names for b in names if a != b]
        pairs = {*others, *((a, f"{EVERYBODY}: {b}") for a, b in others)}
        return pairs - (outcome.delivered - outcome.dropped.keys() - outcome.cut)
