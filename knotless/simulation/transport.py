"""Transports: how hosts send."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from knotless.base.errors import SimulationError
from knotless.base.suggestions import is_not_one_of

MAX_US = 1e9
MAX_MBPS = 1e9
MAX_BYTES = 2**50
MAX_STEPS = 1000
MAX_INCREASE = 1e6
MAX_WINDOW = 65_000
WHOLE = ("int", "int | None")
"""The types of whole numbers."""


@dataclass(frozen=True)
class Part:
    """A part of a transport; its fields are its parameters, which the core reads by their names."""

    name: ClassVar[str]
    place: ClassVar[str] = "control"
    """A transport has at most one part of each place: its field of this name."""
    needs_recovery: ClassVar[bool] = False

    def validate(self) -> None:
        """Raise SimulationError for a parameter that is not possible."""


@dataclass(frozen=True)
class Dcqcn(Part):
    """DCQCN: Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015.

    The defaults are the published parameters, and for ``rhai_mbps`` and ``min_mbps`` those of the
    authors' simulator. What is None is published for a line of 40 Gbit/s and scaled to the line of
    the host: 10 MB, 40 Mbit/s, 200 Mbit/s and 100 Mbit/s.

    Parameters
    ----------
    g : float
        Gain of the estimate of congestion (alpha), over 0 and at most 1.
    cnp_us : float
        A receiver sends at most one notification (CNP) for a queue pair in this time.
    alpha_us : float
        Without notifications, alpha decays after each such time.
    timer_us, counter_bytes : float
        The sender increases its rate after each such time, and after each so many bytes.
    steps : int
        F: increases of fast recovery, before the target rate increases.
    rai_mbps, rhai_mbps : float
        Additive and hyper increase of the target rate.
    min_mbps : float
        The lowest rate.

    """

    g: float = 1 / 256
    cnp_us: float = 50.0
    alpha_us: float = 55.0
    timer_us: float = 55.0
    counter_bytes: float | None = None
    steps: int = 5
    rai_mbps: float | None = None
    rhai_mbps: float | None = None
    min_mbps: float | None = None

    name = "dcqcn"

    def validate(self) -> None:
        """Raise SimulationError for a parameter that is not possible."""
        _check(self.name, "g", self.g, 1.0)
        for name in ("cnp_us", "alpha_us", "timer_us"):
            _check(self.name, name, getattr(self, name), MAX_US)
        for name in ("rai_mbps", "rhai_mbps", "min_mbps"):
            _check(self.name, name, getattr(self, name), MAX_MBPS)
        _check(self.name, "counter_bytes", self.counter_bytes, MAX_BYTES)
        if not 1 <= self.steps <= MAX_STEPS:
            raise SimulationError(f"dcqcn: steps must be 1 to {MAX_STEPS}, not {self.steps}")


@dataclass(frozen=True)
class Nscc(Part):
    """NSCC: the network-signalled congestion control of Ultra Ethernet (specification 1.0).

    The defaults are those of its public simulator (csg-htsim, uec.cpp). Increases are in packets
    for each round trip at 100 Gbit/s and a round trip of 12 us, and scaled to the line of the host
    and the path.

    Parameters
    ----------
    rtt_us : float
        The time of a round trip without queues. None: that of a full packet and its answer on the
        path on which a queue pair begins.
    target_us : float
        The target of the queueing delay. None: a round trip.
    fair, proportional, constant : float
        Fair increase, proportional increase, and what is added in any case.
    gamma : float
        How strong a decrease is, over 0 and at most 1.
    delay_gain : float
        The gain of the mean delay, over 0 and at most 1.
    low_share : float
        Quick adapt acts if less of the largest window has arrived; at most 1, and 0 never.
    largest : float
        The largest window, in bandwidth-delay products without queues.

    """

    rtt_us: float | None = None
    target_us: float | None = None
    fair: float = 5.0
    proportional: float = 4.0
    constant: float = 0.15
    gamma: float = 0.8
    delay_gain: float = 0.0125
    low_share: float = 0.125
    largest: float = 1.5

    name = "nscc"
    needs_recovery = True

    def validate(self) -> None:
        """Raise SimulationError for a parameter that is not possible."""
        for name in ("rtt_us", "target_us"):
            _check(self.name, name, getattr(self, name), MAX_US)
        for name in ("fair", "proportional", "constant"):
            _check(self.name, name, getattr(self, name), MAX_INCREASE, zero=True)
        for name in ("gamma", "delay_gain"):
            _check(self.name, name, getattr(self, name), 1.0)
        _check(self.name, "low_share", self.low_share, 1.0, zero=True)
        _check(self.name, "largest", self.largest, MAX_INCREASE)


@dataclass(frozen=True)
class Recovery(Part):
    """Recovery of lost packets.

    Parameters
    ----------
    rto_us : float
        After so long without a new acknowledgement, everything that is not known to have arrived
        is retransmitted. None: 320 us (RTO_high of Mittal et al., Revisiting Network Support for
        RDMA, SIGCOMM 2018), or twice the time of a window on the line of the host if that is
        longer. It doubles with each timeout in a row, up to 64 times that.
    window : int
        Packets of a queue pair that may be unacknowledged. None: 128, or with NSCC as many as its
        largest window has.
    retries : int
        After more timeouts than this in a row, the queue pair stops.

    """

    rto_us: float | None = None
    window: int | None = None
    retries: int = 7

    place = "recovery"

    def validate(self) -> None:
        """Raise SimulationError for a parameter that is not possible."""
        _check(self.name, "rto_us", self.rto_us, MAX_US)
        if self.window is not None and not 1 <= self.window <= MAX_WINDOW:
            raise SimulationError(
                f"{self.name}: window must be 1 to {MAX_WINDOW} packets, not {self.window}"
            )
        if not 0 <= self.retries < 2**31:
            raise SimulationError(f"{self.name}: retries must be 0 or more, not {self.retries}")


@dataclass(frozen=True)
class GoBackN(Recovery):
    """Retransmission of all packets from the first lost one on, as InfiniBand does."""

    name = "go-back-n"


@dataclass(frozen=True)
class Selective(Recovery):
    """Retransmission of lost packets only."""

    name = "selective"


@dataclass(frozen=True)
class Transport:
    """A transport of hosts: control of rates or windows, recovery of lost packets, or both.

    A control that needs acknowledgements has :class:`Selective` without another recovery.
    """

    control: Part | None = None
    recovery: Recovery | None = None

    def __post_init__(self) -> None:
        """Give the control its recovery."""
        if self.control is not None and self.control.needs_recovery and self.recovery is None:
            object.__setattr__(self, "recovery", Selective())

    @property
    def parts(self) -> list[Part]:
        """Its parts."""
        return [one for one in (self.control, self.recovery) if one is not None]

    @property
    def names(self) -> list[str]:
        """The names of its parts."""
        return [part.name for part in self.parts]

    def validate(self) -> None:
        """Raise SimulationError for parameters that are not possible."""
        for part in self.parts:
            part.validate()

    def for_model(self) -> str:
        """Return it as the simulator reads it: the parameters of each part by its name, in JSON."""
        return json.dumps({part.name: asdict(part) for part in self.parts})


KINDS: dict[str, type[Part]] = {kind.name: kind for kind in (Dcqcn, Nscc, GoBackN, Selective)}


def transport_of(texts: Sequence[str]) -> Transport | None:
    """Return the transport of texts such as ``dcqcn,g=0.01,timer_us=1500``; None without any.

    Raises SimulationError for names and parameters that do not exist, and for two of a kind.
    """
    parts: dict[str, Any] = {}
    for text in texts:
        name, *given = text.lower().split(",")
        if name not in KINDS:
            raise SimulationError(f"transport: {name!r} {is_not_one_of(KINDS)}")
        part = KINDS[name](**_parameters(name, given))
        if part.place in parts:
            given_already = parts[part.place].name
            raise SimulationError(
                f"transport {name}: {given_already} is given already: choose one of them"
            )
        parts[part.place] = part
    transport = Transport(**parts) if parts else None
    if transport is not None:
        transport.validate()
    return transport


def _parameters(name: str, given: Sequence[str]) -> dict[str, Any]:
    kinds = {field.name: field.type for field in fields(KINDS[name])}
    values: dict[str, Any] = {}
    for text in given:
        key, _, value = text.partition("=")
        if key not in kinds:
            raise SimulationError(
                f"transport {name}: {text!r} must be KEY=VALUE with one of {', '.join(kinds)}"
            )
        try:
            values[key] = int(value) if kinds[key] in WHOLE else float(value)
        except ValueError:
            number = "a whole number" if kinds[key] in WHOLE else "a number"
            raise SimulationError(
                f"transport {name}: {key} must be {number}, not {value!r}"
            ) from None
    return values


def _check(part: str, name: str, value: float | None, most: float, *, zero: bool = False) -> None:
    if value is None or (math.isfinite(value) and (0 < value <= most or (zero and value == 0))):
        return
    least = "0 or more" if zero else "over 0"
    raise SimulationError(f"{part}: {name} must be {least} and at most {most:g}, not {value:g}")
