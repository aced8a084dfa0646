"""Numbers with units, as people write them: ``10ms``, ``10G``, ``1.5MB``, ``1%``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from knotless.base.errors import KnotlessError

_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?) ?([a-zµ/%]*)")
_SHOWN = 40


@dataclass(frozen=True)
class Unit:
    """The unit of a number: ``what`` is a noun, ``bare`` what a number without unit counts.

    ``factors`` has what each unit that may be written is in the bare one, without regard to case;
    ``example`` is one that people write, ``placeholder`` stands for a value in the help of options.
    """

    what: str
    bare: str
    factors: Mapping[str, float]
    example: str = ""
    placeholder: str = "N"


_SECONDS = {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_MBPS = {
    f"{prefix}{suffix}": factor
    for prefix, factor in {"k": 1e-3, "m": 1.0, "g": 1e3, "t": 1e6}.items()
    for suffix in ("", "bit/s", "bps", "bit")
}
_BYTES = {"b": 1.0} | {
    f"{prefix}{suffix}": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for suffix, base in (("b", 1000.0), ("ib", 1024.0))
}

_MICROSECONDS = {name: 1e6 * seconds for name, seconds in _SECONDS.items()}

SECONDS = Unit("time", "s", _SECONDS, "10ms", "S")
MICROSECONDS = Unit("time", "us", _MICROSECONDS, "10ms", "US")
MBPS = Unit("rate", "Mbit/s", _MBPS, "10G", "MBPS")
BYTES = Unit("number of bytes", "bytes", _BYTES, "64kB", "BYTES")
SHARE = Unit("share", "", {"%": 0.01}, "1%", "SHARE")
PLAIN = Unit("number", "", {})


def number(text: str, unit: Unit = PLAIN) -> float:
    """Return a number in the bare unit, always finite.

    Raises
    ------
    KnotlessError
        It is none, or has another unit. The message says what may be written.

    Examples
    --------
    >>> number("10ms", MICROSECONDS), number("10 Gbit/s", MBPS), number("57%", SHARE)
    (10000.0, 10000.0, 0.57)

    """
    match = _NUMBER.fullmatch(text.strip().lower())
    factor = 1.0 if match is None or not match[2] else unit.factors.get(match[2])
    if match is not None and factor is not None:
        # Division keeps decimals: 57% is 0.57.
        value = float(match[1])
        value = value * factor if factor >= 1 else value / round(1 / factor)
        if math.isfinite(value):
            return value
    raise KnotlessError(f"{text[:_SHOWN]!r} is no {unit.what}{how_to_write(unit)}")


def how_to_write(unit: Unit) -> str:
    """Return what an error says of how numbers of a unit are written.

    Examples
    --------
    >>> how_to_write(MBPS)
    ': write it as 10G, or as a number of Mbit/s'

    """
    bare = f"a number of {unit.bare}" if unit.bare else "a number"
    return f": write it as {unit.example}, or as {bare}" if unit.example else ""
