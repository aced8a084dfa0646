"""Findings: what reading the files of a fabric shows besides its forwarding state."""

from __future__ import annotations

from dataclasses import dataclass, field

_MAX = 1000


@dataclass
class Findings:
    """Missing and unusual facts, in the order in which they were found; a bounded number.

    ``gaps`` are missing facts, without which nothing can be called safe. ``doubts`` are missing
    facts without which a cycle is not certain. ``problems`` are mistakes that can lose packets or
    move them to another priority; ``losses`` are those by which packets of lossless priorities can
    be lost. ``notes`` are assumptions and observations.
    """

    gaps: dict[str, None] = field(default_factory=dict)
    doubts: dict[str, None] = field(default_factory=dict)
    problems: dict[str, None] = field(default_factory=dict)
    losses: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    def gap(self, text: str) -> None:
        """Add a missing fact; what is known stays true."""
        _keep(self.gaps, text)

    def doubt(self, text: str) -> None:
        """Add a missing fact in place of which the worst case is taken."""
        _keep(self.doubts, text)

    def unclear(self, text: str) -> None:
        """Add a fact that is contradictory or not understood: nothing is certain without it."""
        self.gap(text)
        self.doubt(text)

    def problem(self, text: str) -> None:
        """Add a mistake in what switches are told to do."""
        _keep(self.problems, text)

    def loss(self, text: str) -> None:
        """Add a mistake by which packets of a lossless priority can be lost."""
        self.problem(text)
        _keep(self.losses, text)

    def note(self, text: str) -> None:
        """Add an assumption or observation."""
        _keep(self.notes, text)


def _keep(texts: dict[str, None], text: str) -> None:
    if len(texts) < _MAX:
        texts[text] = None
