"""The verdict on an imported fabric; it loads no libraries, see :mod:`.verdict_parts`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

from knotless.base.flow_control import FlowControl, verdict_text
from knotless.importers.causes import Cause
from knotless.verification.verdict_parts import Witness, theorem_of


@dataclass(frozen=True)
class SentWitness(Witness):
    """A witness, and the label with which its packets are sent: ``SL`` 3, ``DSCP`` 26."""

    label: str
    value: int

    @property
    def packet(self) -> str:
        """The packet as text, with its label."""
        return f"{super().packet} with {self.label} {self.value}"

    def as_json(self) -> dict[str, str | int]:
        """Return the witness as a value for :func:`json.dumps`, the label as a key of its own."""
        values: dict[str, str | int] = asdict(self)
        del values["label"], values["value"]
        return {**values, self.label.lower(): self.value}


@dataclass(frozen=True)
class ImportedVerdict:
    """The result of a check.

    ``pairs`` are (host, destination); of ``undelivered`` ones some packet is dropped, loops,
    arrives elsewhere, or cannot be followed. ``acyclic`` is None if it is unknown; ``missing``
    then names the facts that would settle it. Any ``cycle`` given with None is only possible.
    ``vcs`` are the verdicts for each virtual channel alone. ``losses`` are those of ``problems`` by
    which packets of lossless priorities can be lost, ``assumes`` what the verdict takes for
    granted. ``unread`` are the ports whose far end has no files. ``ignored`` are files that were
    not read, ``not_read`` says why, and which command gives what is read. With ``assumed_routes``
    the routes are computed from configurations. ``causes`` are the sources of the facts behind each
    line, and each step of the cycle, by its text.
    """

    fabric: str
    flow_control: FlowControl
    switches: int
    hosts: int
    pairs: int
    undelivered: int
    max_channel_load: float
    acyclic: bool | None
    cycle: list[str]
    witnesses: tuple[SentWitness, ...]
    vcs: dict[str, bool]
    missing: list[str]
    notes: list[str]
    problems: list[str]
    losses: list[str]
    assumes: list[str]
    ignored: list[str]
    not_read: list[dict[str, str]]
    unread: list[str]
    assumed_routes: bool = False
    causes: dict[str, list[Cause]] = field(default_factory=dict, compare=False)

    @property
    def failed(self) -> int:
        """The number of pairs between which not all is delivered."""
        return self.undelivered

    @property
    def safe(self) -> bool | None:
        """Whether no deadlock is possible; None: unknown. Here it depends on cycles alone."""
        return self.acyclic

    @property
    def theorem(self) -> str | None:
        """The name of what proves that no deadlock is possible; None if nothing does."""
        return theorem_of(is_acyclic=self.acyclic is True, is_safe=False)

    @property
    def ok(self) -> bool:
        """Return whether all is delivered, no deadlock is possible, and nothing can be lost."""
        return self.failed == 0 and self.safe is True and not self.losses

    @property
    def text(self) -> str:
        """The deadlock verdict as text, with the flow control."""
        return verdict_text(
            self.flow_control, self.cycle, self.missing, assumed_routes=self.assumed_routes
        )

    def as_json(self) -> dict[str, object]:
        """Return the verdict as plain values, without the causes, which are found in files."""
        blocked = self.cycle if self.safe is False else []
        values = asdict(replace(self, causes={}))
        del values["causes"]
        return {**values, "safe": self.safe, "theorem": self.theorem, "blocked": blocked}
