"""Numbers in sentences, with what they count: ``1 run``, ``1,024 runs``."""

from __future__ import annotations

import math
import re

_SIGNIFICANT = 4
_PLURAL = re.compile(r"[A-Za-z]*[a-z]{2}s|[A-Z]+s")
"""Plurals of nouns; units such as ``us`` and ``Mbit/s`` are none."""


def number_text(value: float, decimals: int | None = None) -> str:
    """Return a number with thousands separators and as many digits as people compare.

    Examples
    --------
    >>> number_text(30642), number_text(108.82), number_text(0.66)
    ('30,642', '108.8', '0.66')
    >>> number_text(3.0, 1), number_text(137940.4)
    ('3.0', '137,940')

    """
    if decimals is not None:
        return f"{value:,.{decimals}f}"
    if not math.isfinite(value):
        return str(value)
    if float(value).is_integer():
        return f"{int(value):,}"
    digits = max(0, _SIGNIFICANT - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text


def counted(value: float, things: str, decimals: int | None = None) -> str:
    """Return a number with what it counts or its unit, of which there may be only one.

    The first word is the noun in the plural, or a unit.

    Examples
    --------
    >>> counted(8, "paths on a channel"), counted(1, "paths on a channel"), counted(1, "us")
    ('8 paths on a channel', '1 path on a channel', '1 us')
    >>> counted(1, "switches"), counted(1, "VLANs"), counted(1024, "queries")
    ('1 switch', '1 VLAN', '1,024 queries')

    """
    text = number_text(value, decimals)
    plural, space, rest = things.partition(" ")
    if text == "1" and _PLURAL.fullmatch(plural):
        things = f"{_singular(plural)}{space}{rest}"
    return f"{text} {things}".rstrip()


def _singular(plural: str) -> str:
    if plural.endswith("ies"):
        return f"{plural[:-3]}y"
    return plural.removesuffix("es" if plural.endswith(("ches", "shes", "xes", "sses")) else "s")
