"""Findings: what reading the files of a fabric shows besides its forwarding state."""

from __future__ import annotations

from dataclasses import dataclass, field

from knotless.importers.causes import Cause, Source

_MAX = 1000


@dataclass
class Findings:
    """Missing and unusual facts, in the order in which they were found; a bounded number.

    ``gaps`` are missing facts, without which nothing can be called safe. ``doubts`` are missing
    facts without which a cycle is not certain. ``problems`` are mistakes that can lose packets or
    move them to another priority; ``losses`` are those by which packets of lossless priorities can
    be lost. ``notes`` are assumptions and observations. ``sources`` are where
    what is read of each device is, by its name, ``causes`` those of each finding, by its text.
    """

    gaps: dict[str, None] = field(default_factory=dict)
    doubts: dict[str, None] = field(default_factory=dict)
    problems: dict[str, None] = field(default_factory=dict)
    losses: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    causes: dict[str, tuple[Cause, ...]] = field(default_factory=dict)

    def cause(self, device: str, *keys: str) -> Cause:
        """Return the source of a fact about a device, see :meth:`Source.cause`."""
        return self.sources.get(device, Source()).cause(*keys)

    def gap(self, text: str, *causes: Cause) -> None:
        """Add a missing fact; what is known stays true."""
        self._keep(self.gaps, text, causes)

    def doubt(self, text: str, *causes: Cause) -> None:
        """Add a missing fact in place of which the worst case is taken."""
        self._keep(self.doubts, text, causes)

    def unclear(self, text: str, *causes: Cause) -> None:
        """Add a fact that is contradictory or not understood: nothing is certain without it."""
        self.gap(text, *causes)
        self.doubt(text)

    def problem(self, text: str, *causes: Cause) -> None:
        """Add a mistake in what switches are told to do."""
        self._keep(self.problems, text, causes)

    def loss(self, text: str, *causes: Cause) -> None:
        """Add a mistake by which packets of a lossless priority can be lost."""
        self.problem(text, *causes)
        self._keep(self.losses, text, causes)

    def note(self, text: str, *causes: Cause) -> None:
        """Add an assumption or observation."""
        self._keep(self.notes, text, causes)

    def _keep(self, texts: dict[str, None], text: str, causes: tuple[Cause, ...]) -> None:
        if len(texts) < _MAX:
            texts[text] = None
            if causes:
                self.causes.setdefault(text, causes)
