"""The answer of a verdict: whether it can deadlock, why, and what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from knotless.base.flow_control import SHOWN_BLOCKED, verdict_words
from knotless.base.printable import listed
from knotless.cli.answer import Cycle, Figure, Headline, Reason, Several, Tone
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.verdict_parts import BUBBLE, ESCAPE, is_pool

if TYPE_CHECKING:
    from knotless.verification.check import Outcome, Verdict
    from knotless.verification.remedies import Remedy

MAX_CHANGES = 10
"""Limit of the changes of a remedy that are printed; JSON has all."""
NOTES = 2
"""Notes of a kind that a terminal shows."""
_TONES = {True: Tone.GOOD, False: Tone.BAD, None: Tone.OPEN}


def engine_name(engine: str) -> str:
    """Return the name of an engine for people: of one that is a file, without its folder."""
    return engine.rpartition("/")[2]


def verdict_headline(subject: str, verdict: Outcome | ImportedVerdict, more: str = "") -> Headline:
    """Return whether what the verdict is on can deadlock; ``more`` ends the sentence."""
    assumed = isinstance(verdict, ImportedVerdict) and verdict.assumed_routes
    word, rest = verdict_words(verdict.flow_control, safe=verdict.safe, assumed_routes=assumed)
    tone = _TONES[verdict.safe]
    return Headline(subject, word, rest + more, Tone.BAD if more and verdict.safe else tone)


def deadlock_reasons(
    verdict: Outcome | ImportedVerdict, with_place: Callable[[str], str] = str
) -> Iterator[Reason]:
    """Yield why it can deadlock, or why that is unknown: nothing if it cannot.

    ``with_place`` returns a line with where its cause is.
    """
    if isinstance(verdict, ImportedVerdict):
        missing = [f"missing: {with_place(line)}" for line in verdict.missing]
        yield Several(missing, "missing facts")
        blocked = verdict.cycle
    else:
        blocked = [] if verdict.safe else verdict.blocked
        if verdict.theorem == ESCAPE:
            yield "dependencies have a cycle, but no set of channels can block itself"
        elif verdict.theorem == BUBBLE:
            yield "all cycles are rings, which frames enter only if room is left for another"
    if blocked and blocked != verdict.cycle:
        yield f"frames on {listed(blocked, SHOWN_BLOCKED)} can all wait for each other"
    elif blocked:
        members = "channels and pools" if any(map(is_pool, blocked)) else "channels"
        yield Cycle(blocked, verdict.safe is None, members)
    if blocked:
        yield Several([with_place(witness.text) for witness in verdict.witnesses], "packets")


def load_and_paths(verdict: Outcome | ImportedVerdict, bound: float | None = None) -> list[Figure]:
    """Return the figures of paths; ``bound`` is the least load of the busiest channel."""
    load = verdict.max_channel_load
    figures = [Figure("load", load, "paths on the busiest channel", at_least=bound)]
    if not isinstance(verdict, ImportedVerdict):
        mean, longest = verdict.mean_switches, verdict.max_switches
        figures.append(Figure("paths", mean, "switches", at_most=longest, decimals=1))
    return figures


def setting_reasons(verdict: Verdict) -> Iterator[Reason]:
    """Yield what the settings of switches lose, and what else is worth a look."""
    yield Several(verdict.losses, "losses")
    yield Several([f"note: {line}" for line in verdict.notes], "notes")


def endpoint_reasons(verdict: Outcome | ImportedVerdict | None) -> Iterator[Reason]:
    """Yield whether the reserves of hosts suffice; nothing without end points."""
    yield from getattr(verdict, "reserve_lines", ())


def remedy_lines(remedies: Sequence[Remedy]) -> Iterator[str]:
    """Yield what people see of the remedies."""
    if not remedies:
        yield "no remedy was found"
    for number, remedy in enumerate(remedies, 1):
        cost = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in remedy.cost.items() if n)
        yield f"remedy {number} ({remedy.kind}): {remedy.text}; cost: {cost or 'none'}"
        for line in remedy.changes[:MAX_CHANGES]:
            yield f"  {line}"
        if len(remedy.changes) > MAX_CHANGES:
            yield f"  and {len(remedy.changes) - MAX_CHANGES} more"


def not_read_lines(not_read: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield the files that were not read, those with the same reason in one line."""
    by_reason: dict[str, list[str]] = {}
    for file in not_read:
        why = file["reason"] + (f" (instead: {file['command']})" if file["command"] else "")
        by_reason.setdefault(why, []).append(file["file"])
    for why, files in by_reason.items():
        yield f"not read: {listed(files, 5)}: {why}"
