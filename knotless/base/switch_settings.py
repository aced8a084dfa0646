"""Settings of a switch: buffers, schedulers, marking and watchdog, from one YAML file.

::

    lossless: [3, 4]              # priorities that pause their sender; all others may be dropped
    pools:
      lossless: {side: ingress, bytes: 12582912, headroom_bytes: 2097152}
      out: {side: egress, bytes: 12582912}
    ingress:
      - priorities: [3, 4]
        pool: lossless
        reserved_bytes: 4608
        alpha: 0.125
        headroom_bytes: 96256
        resume_offset_bytes: 4608
    egress:
      - {priorities: [0, 1, 2], pool: out, alpha: 1}
    scheduler:
      - {priorities: [7], strict: true}
      - {priorities: [3], weight: 60}
      - {priorities: [0, 1, 2], weight: 40}
    ecn:
      - {priorities: [3], kmin_bytes: 100000, kmax_bytes: 400000, pmax: 0.2}
    pause_frames: {quanta: 65535, response_us: 0.5}
    ports:
      "5": {lossless: []}
    switches:
      s9: {lossless: [3]}

What a file leaves out is as without a file: an ingress buffer of its own for each port and
priority, egress queues that are limited only where nothing pauses, round robin by frame, no
marking, pause signals that take no place on the wire.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from knotless.base import yaml_file
from knotless.base.complaints import complaint
from knotless.base.errors import SwitchSettingsError
from knotless.base.files import write_whole
from knotless.base.model_limits import MAX_BYTES, PRIORITIES
from knotless.base.printable import printable

MAX_FILE_BYTES = 1 << 22
"""The settings of large fabrics are written by :func:`write`."""

Bytes = Annotated[int, Field(ge=0, lt=MAX_BYTES)]
Priority = Annotated[int, Field(ge=0, lt=PRIORITIES)]
Priorities = Annotated[tuple[Priority, ...], Field(strict=False)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Pool(_Part):
    """Memory that ports and priorities of one switch share.

    ``bytes`` does not include what is reserved. ``headroom_bytes`` is shared by the headroom of all
    groups of an ingress pool (SONiC's ``xoff`` of the pool); None: each group has its own.
    """

    side: Literal["ingress", "egress"]
    bytes: Bytes
    headroom_bytes: Bytes | None = None


class _Shares(_Part):
    """The share of a pool that each (port, priority) may take beyond its reserve.

    ``alpha`` bounds it by ``alpha * (what is free in the pool)``, as ``2**dynamic_th`` of SAI does;
    ``limit_bytes`` is a fixed bound instead. Without a pool the bound is of memory of its own.
    """

    priorities: Priorities
    pool: Name | None = None
    reserved_bytes: Bytes = 0
    alpha: Annotated[float, Field(gt=0, le=256, allow_inf_nan=False, strict=False)] | None = None
    limit_bytes: Bytes | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if self.alpha is not None and self.limit_bytes is not None:
            raise ValueError("alpha and limit_bytes exclude each other")
        if self.alpha is not None and self.pool is None:
            raise ValueError("alpha needs a pool")
        return self


class IngressGroup(_Shares):
    """Ingress buffers, one for each port and priority.

    Of a lossless priority, the sender is paused when the buffer holds more than its reserved bytes
    and its bound, and resumed when it is at least ``resume_offset_bytes`` below; what arrives in
    between is charged to the headroom. Of others, what exceeds the bound is dropped.

    ``headroom_bytes`` None: what the link needs to lose nothing. ``resume_offset_bytes`` None: the
    longest frame with a pool, else half of the bound. With neither pool nor bound, the limits of a
    port without settings.
    """

    headroom_bytes: Bytes | None = None
    resume_offset_bytes: Bytes | None = None


class EgressGroup(_Shares):
    """Egress queues, one for each port and priority; what exceeds the bound is dropped."""


class Scheduled(_Part):
    """The scheduling of queues.

    Strict ones go before all others, the higher priority first; the others share what is left by
    deficit round robin over bytes, each with its weight; those that are not named have weight 1.
    """

    priorities: Priorities
    strict: bool = False
    weight: Annotated[int, Field(ge=1, le=100_000)] | None = None

    @model_validator(mode="after")
    def _strict_or_weight(self) -> Self:
        if self.strict == (self.weight is not None):
            raise ValueError("give either strict: true or a weight")
        return self


class Marking(_Part):
    """Explicit congestion notification, by the length of the egress queue when a frame leaves it.

    Up to ``kmin_bytes`` none is marked, above ``kmax_bytes`` each; in between with probability
    ``pmax * (queue - kmin) / (kmax - kmin)``.
    """

    priorities: Priorities
    kmin_bytes: Bytes
    kmax_bytes: Bytes
    pmax: Annotated[float, Field(gt=0, le=1, strict=False)] = 1.0

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.kmin_bytes > self.kmax_bytes:
            raise ValueError("kmin_bytes exceeds kmax_bytes")
        return self


class PauseFrames(_Part):
    """Pause frames that take their place on the wire, behind the frame that is being sent.

    They pause for ``quanta`` (512 bit times each), are repeated after half of that while the buffer
    stays above its limit, and the sender stops ``response_us`` after it has received one. A file
    may say ``true`` for the defaults.
    """

    quanta: Annotated[int, Field(ge=1, le=65535)] = 65535
    response_us: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False, strict=False)] = 0.0


def _frames(value: object) -> object:
    """Return the defaults for ``true``, and nothing for ``false``."""
    return {True: PauseFrames(), False: None}[value] if isinstance(value, bool) else value


class WatchdogSettings(_Part):
    """A watchdog as SONiC has it: queues that are paused for too long.

    ``polling_us`` is how often it looks; None: it finds out at once. ``priorities`` None: all that
    are lossless. Action ``drop`` also drops what arrives from the port in the same priority,
    ``drop-egress`` does not. With action ``alert`` storms are only counted. ``restored_by`` is what
    ends a storm after ``restoration_us``: the queue is ``unpaused``; no PFC ``frames`` arrive for
    it, as SONiC counts them; or these are not counted while all watched queues of the port are in a
    storm (``frames-while-enabled``).
    """

    detection_us: Annotated[float, Field(gt=0, le=1e9, strict=False)]
    restoration_us: Annotated[float, Field(ge=0, le=1e9, strict=False)] | None = None
    restored_by: Literal["unpaused", "frames", "frames-while-enabled"] = "unpaused"
    action: Literal["drop", "drop-egress", "forward", "alert"] = "drop"
    polling_us: Annotated[float, Field(gt=0, le=1e9, strict=False)] | None = None
    priorities: Priorities | None = None


class LinkSettings(_Part):
    """The settings on which both ends of a link must agree; None: as at the other end.

    These are compared alone: links run as the fabric says. ``autoneg`` is whether rate and FEC are
    negotiated, ``unit_bytes`` a unit of credits, ``repeats`` whether damaged frames are repeated.
    """

    flow_control: Literal["off", "pause", "pfc", "credits"] | None = None
    mtu_bytes: Annotated[int, Field(ge=64, le=65_535)] | None = None
    rate_mbps: Annotated[float, Field(gt=0, le=1e9, strict=False)] | None = None
    fec: Literal["none", "fc", "rs"] | None = None
    autoneg: bool | None = None
    unit_bytes: Annotated[int, Field(ge=1, le=65_535)] | None = None
    repeats: bool | None = None


class PortSettings(_Part):
    """The settings of a port; None: those of its switch.

    ``ingress`` is of frames that it receives, the rest of frames that it sends. ``lossless`` are
    the priorities for which it sends and obeys PFC. ``link`` is what is compared with the other
    end.
    """

    lossless: Priorities | None = None
    link: LinkSettings | None = None
    ingress: Annotated[tuple[IngressGroup, ...], Field(strict=False)] | None = None
    egress: Annotated[tuple[EgressGroup, ...], Field(strict=False)] | None = None
    scheduler: Annotated[tuple[Scheduled, ...], Field(strict=False)] | None = None
    ecn: Annotated[tuple[Marking, ...], Field(strict=False)] | None = None
    watchdog: WatchdogSettings | None = None

    @model_validator(mode="after")
    def _each_priority_once(self) -> Self:
        groups = (self.ingress, self.egress, self.scheduler, self.ecn)
        for name, parts in zip(("ingress", "egress", "scheduler", "ecn"), groups, strict=True):
            _once(name, (priority for part in parts or () for priority in part.priorities))
        _once("lossless", self.lossless or ())
        return self

    def shares(self) -> Iterator[tuple[str, _Shares]]:
        """Yield each group with its side, ``ingress`` or ``egress``."""
        yield from (("ingress", group) for group in self.ingress or ())
        yield from (("egress", group) for group in self.egress or ())


class SwitchSettings(PortSettings):
    """The settings of a switch, and of those of its ports that differ, by number."""

    pools: dict[Name, Pool] = {}
    pause_frames: Annotated[PauseFrames | None, BeforeValidator(_frames)] = None
    ports: dict[Name, PortSettings] = {}

    @model_validator(mode="after")
    def _pools_exist(self) -> Self:
        every: list[PortSettings] = [self, *self.ports.values()]
        for port in every:
            for side, group in port.shares():
                if group.pool is None:
                    continue
                pool = self.pools.get(group.pool)
                if pool is None:
                    raise ValueError(f"{side}: there is no pool {group.pool[:200]!r}")
                if pool.side != side:
                    raise ValueError(f"{side}: pool {group.pool[:200]!r} is of the {pool.side}")
        return self

    def of_port(self, port: str | int) -> PortSettings:
        """Return the settings of a port, those that it takes from its switch included."""
        own = self.ports.get(str(port), PortSettings())
        merged = {name: getattr(self, name) if value is None else value for name, value in own}
        return PortSettings.model_construct(**merged)


class SwitchFile(SwitchSettings):
    """The settings of all switches, and of those that differ, by name. These inherit nothing."""

    switches: dict[Name, SwitchSettings] = {}

    def of_switch(self, switch: str) -> SwitchSettings:
        """Return the settings of a switch."""
        return self.switches.get(switch, self)

    @property
    def has_watchdog(self) -> bool:
        """Whether a port of a switch may have a watchdog."""
        every = (self, *self.switches.values())
        ports = (port for switch in every for port in (switch, *switch.ports.values()))
        return any(port.watchdog is not None for port in ports)

    def for_model(self) -> dict[str, Any]:
        """Return the settings as values for JSON, as simulator and emulator read them."""
        values = self.model_dump(mode="json", exclude_none=True)
        for switch in (values, *values["switches"].values()):
            for port in (switch, *switch["ports"].values()):
                port.pop("link", None)
        return values


def read(path: Path) -> SwitchFile:
    """Return the settings in a YAML file; raises SwitchSettingsError with file, line or key."""
    content = yaml_file.read(path, SwitchSettingsError, MAX_FILE_BYTES)
    try:
        return SwitchFile.model_validate({} if content is None else content)
    except ValidationError as error:
        raise SwitchSettingsError(f"{path}: {complaint(error)}") from None


def write(path: Path, settings: SwitchFile, comments: Iterable[str] = ()) -> None:
    """Write settings to a YAML file that :func:`read` reads as the same, below ``comments``.

    Raises SwitchSettingsError if the file cannot be written, or would be too large to be read.
    """
    text = text_of(settings, comments)
    if len(text.encode()) > MAX_FILE_BYTES:
        raise SwitchSettingsError(
            f"{path}: the settings of {len(settings.switches)} switches need more than"
            f" {MAX_FILE_BYTES} bytes; write those of fewer switches"
        )
    write_whole(path, text, SwitchSettingsError)


def text_of(settings: SwitchFile, comments: Iterable[str] = ()) -> str:
    """Return settings as YAML, without what is as by default."""
    content = settings.model_dump(mode="json", exclude_defaults=True)
    lines = "".join(f"# {printable(line)}\n" for line in comments)
    return lines + yaml_file.text_of(content)


def _once(name: str, priorities: Iterable[int]) -> None:
    for priority, count in Counter(priorities).items():
        if count > 1:
            raise ValueError(f"{name}: priority {priority} occurs {count} times")
