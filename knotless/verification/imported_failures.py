"""The verdicts on failures of an imported fabric."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from knotless._core import forwarding as core
from knotless.importers.fabric import TableFabric
from knotless.importers.reactions import first_labels, what_if
from knotless.routing.graphs.dependencies import cycle_names
from knotless.verification.failures import (
    MOST_SETS,
    Certificate,
    Failure,
    FailureVerdict,
    sets_of,
    single_failures,
)
from knotless.verification.imported import SentWitness


class ImportedFailures:
    """An imported fabric and a model of how its routing reacts."""

    def __init__(self, imported: TableFabric, reaction: str) -> None:
        """Follow everything without failures. Raises RuleError if the model does not fit."""
        self.imported, self.reaction = imported, reaction
        self.core = what_if(imported, reaction)

    def intact(self) -> FailureVerdict:
        """Return the verdict of the model without failures."""
        return self._verdict((), self.core.intact())

    def evaluate(self, failure: Failure) -> FailureVerdict:
        """Return the verdict on a failure."""
        answer = self.core.evaluate(failure.channels, failure.switches)
        return self._verdict(failure.names, answer)

    def certificate(
        self, most: int, seed: int, limit: int = MOST_SETS
    ) -> tuple[Certificate, Iterable[Failure]]:
        """Return a certificate without verdicts on failures, and the failures to evaluate."""
        singles = single_failures(self.imported.fabric, self.imported.channels)
        total, planned, failures = sets_of(singles, most, seed, limit)
        different = len(self.core.differences())
        made = Certificate(
            self.reaction, most, total, planned, seed, limit, self.intact(), different
        )
        return made, failures

    def _verdict(self, failed: tuple[str, ...], answer: core.FailureAnswer) -> FailureVerdict:
        nodes, packets, undelivered, unknown = answer
        findings = self.imported.findings
        missing = bool(findings.doubts) if nodes else bool(findings.gaps) or unknown
        names = cycle_names(self.imported.channels, nodes)
        state, traffics = self.imported.traffics[0].state, self.imported.traffics
        first = first_labels(traffics)
        witnesses = [
            SentWitness(
                held,
                wanted,
                self.imported.fabric.hosts[source].name,
                state.destination_name(destination),
                self.imported.label,
                traffics[bisect_right(first, label) - 1].sent_as(source, destination),
            )
            for held, wanted, (source, destination, label) in zip(
                names, [*names[1:], *names[:1]], packets, strict=True
            )
        ]
        return FailureVerdict(
            failed, None if missing else not nodes, names, undelivered, tuple(witnesses)
        )
