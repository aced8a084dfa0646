"""A second judge of states: the slow tracer of the proofs' own tests, which reads rules as text.

It shares no code with the judge but the reader of messages. In a state that lasts, both must find
the same fates of all frames and agree on cycles. While older frames are there, the tracer lets
them meet more than the judge does, so it must find every wait that the judge finds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.files import to_text
from tests.support.reference import CUT, LOOP, TAGGED
from tests.support.reference_rules import RuleReference

if TYPE_CHECKING:
    from tests.seeded.judge import Outcome, State

_MOST_STATES = 3
"""The tracer follows all orders, so it is not asked about longer sequences."""


class SecondOpinion:
    """Compares outcomes of the judge with those of the tracer."""

    def __init__(
        self, fabric: Fabric, *, shares_buffer: bool, tags: HostTags | None = None
    ) -> None:
        self._fabric, self._text, self._shares = fabric, to_text(fabric), shares_buffer
        self._tags = {} if tags is None else {"tags.json": json.dumps(tags)}

    def of_state(self, state: State, outcome: Outcome) -> str:
        """Return in what the tracer differs about one state; empty: in nothing."""
        reference = self._reference([state])
        names = [host.name for host in self._fabric.hosts]
        for source in names:
            for destination in names:
                if source == destination:
                    continue
                fates = reference.fates(source, destination)
                pair = (source, destination)
                is_right = pair in outcome.delivered and not any(
                    pair in kind for kind in (outcome.dropped, outcome.cut, outcome.wrong)
                )
                if is_right != (fates == {(destination,)}):
                    return f"{source} -> {destination}: {sorted(fates)}"
            if difference := self._of_broadcast(reference, source, outcome):
                return difference
        return self._of_cycle(reference, outcome)

    def of_sequence(self, states: Sequence[State], outcome: Outcome) -> str:
        """Return a wait of the judge that the tracer does not find; empty: there is none.

        Also if links failed or returned meanwhile, or there are many states: it is not asked.
        """
        is_long = len(states) > _MOST_STATES
        if is_long or any(state.down != states[0].down for state in states):
            return ""
        reference = self._reference(states)
        for source, destination in reference.pairs():
            reference.fates(source, destination)
        for host in self._fabric.hosts:
            reference.fates(host.name, "all")
        found = {self._shared(a) + self._shared(b) for a, b in reference.edges}
        waits = ((a, b) for a, following in outcome.waits.items() for b in following)
        missing = next((pair for pair in waits if pair[0] + pair[1] not in found), None)
        return f"does not find {missing[0]} -> {missing[1]}" if missing else ""

    def _shared(self, node: tuple[str, int, int]) -> tuple[str, int, int]:
        return (*node[:2], 0) if self._shares else node

    def _reference(self, states: Sequence[State]) -> RuleReference:
        reference = RuleReference(*[self._files(state) for state in states])
        for end in states[0].down:
            reference.peer.pop(end, None)
        return reference

    def _files(self, state: State) -> dict[str, str]:
        files = {"fabric.json": self._text, **self._tags}
        for name, forwarding in state.held.items():
            files[f"{name}.flows"], files[f"{name}.groups"] = forwarding.text
        return files

    def _of_broadcast(self, reference: RuleReference, source: str, outcome: Outcome) -> str:
        fates = reference.fates(source, "all")
        arrive = {name for fate in fates for name in fate} - {CUT, LOOP, TAGGED, source}
        judged = {
            name
            for name in (host.name for host in self._fabric.hosts)
            if (source, f"all: {name}") in outcome.delivered
        }
        if arrive != judged:
            return f"broadcasts of {source}: {sorted(arrive)} and not {sorted(judged)}"
        return ""

    def _of_cycle(self, reference: RuleReference, outcome: Outcome) -> str:
        cycle = reference.has_cycle("pause" if self._shares else "pfc")
        return "" if cycle == bool(outcome.cycle()) else f"a cycle: {cycle}"
