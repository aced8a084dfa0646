"""The findings of a verdict, each with the rule that it breaks, for pipelines and notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from knotless.importers.causes import Place
from knotless.verification.imported_verdict import ImportedVerdict

if TYPE_CHECKING:
    from knotless.verification.check import Verdict
    from knotless.verification.check_state import ShownFailureTable

RULES: Mapping[str, tuple[str, str]] = {
    "deadlock": ("error", "Channels wait for each other in a cycle: it can deadlock."),
    "deadlock-after-failure": ("error", "After a failure it can deadlock."),
    "not-delivered": ("error", "Packets do not arrive, or not where they should."),
    "lossless-loss": ("error", "Packets of lossless priorities can be lost."),
    "unknown": ("warning", "Facts are missing, so the verdict is unknown."),
    "note": ("note", "Something worth a look, which does not change the verdict."),
}
"""The rules: the level of their findings, and what they mean."""


class Finding(NamedTuple):
    """A finding: its rule, its text, the channels that it names, and the lines that it rests on.

    The causes of a verdict are by these lines; none: the text is the only one.
    """

    rule: str
    text: str
    channels: Sequence[str] = ()
    lines: Sequence[str] = ()

    def places(self, places: Mapping[str, Sequence[Place]]) -> list[tuple[str, Place]]:
        """Return the places of its causes, each with the line that rests on it."""
        lines = self.lines or (self.text,)
        return [(line, place) for line in lines for place in places.get(line, ())]

    @property
    def identifier(self) -> str:
        """The same for the same finding of a later check: of a cycle, whatever packets show it."""
        about = " ".join(sorted(self.channels)) or self.text.split("\n", 1)[0]
        return f"{self.rule}-{sha256(about.encode()).hexdigest()[:12]}"


def findings(
    verdict: Verdict | ImportedVerdict, table: ShownFailureTable | None
) -> Iterator[Finding]:
    """Yield what ``knotless check`` finds; none if all is well."""
    if verdict.safe is False:
        steps = [witness.text for witness in verdict.witnesses]
        yield Finding("deadlock", "\n".join([verdict.text, *steps]), verdict.cycle, steps)
    elif verdict.safe is None:
        missing = verdict.missing if isinstance(verdict, ImportedVerdict) else ()
        yield Finding("unknown", verdict.text, verdict.cycle, missing)
    if table is not None and table.acyclic is False:
        yield Finding("deadlock-after-failure", "\n".join(table.lines))
    elif table is not None and not table.survives:
        yield Finding("unknown", table.lines[-1])
    losses = set(verdict.losses)
    if verdict.failed and losses >= {*verdict.problems}:
        yield Finding("not-delivered", "not all is delivered", lines=verdict.problems)
    for line in verdict.problems:
        if line not in losses:
            yield Finding("not-delivered" if verdict.failed else "note", line)
    for line in verdict.losses:
        yield Finding("lossless-loss", line)
    for line in verdict.notes:
        yield Finding("note", line)
