"""Loops in which frames go round between switches, as text for people. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from knotless.base.printable import listed

NOT_WATCHED = "links are plain: forwarding loops and deadlocks are not watched"
_SHOWN_CHANNELS = 12
"""In a line; of longer loops the middle is left out."""
_SHOWN_RULES = 4


def problems(status: Mapping[str, Any]) -> list[str]:
    """Return a line for each loop in which frames still go round.

    ``status`` is the emulator's (docs/emulator-protocol.md, ``loops``). If its loops have
    ``sent_on`` (:mod:`knotless.emulation.forwarding_loops`), the lines say what has sent the frames
    on at each switch.
    """
    return [
        f"forwarding loop: the same frames come again and again by {_ring(loop['channels'])}"
        + _reasons(loop.get("sent_on", ()))
        for loop in status.get("loops", ())
        if loop["present"]
    ]


def past(status: Mapping[str, Any]) -> list[str]:
    """Return a line for each loop since the last reset in which nothing goes round any more."""
    return [
        "there was a forwarding loop until"
        f" {loop['last_us'] / 1e6:.3f} s of virtual time: {_ring(loop['channels'])}"
        for loop in status.get("loops", ())
        if not loop["present"]
    ]


def _ring(channels: Sequence[str]) -> str:
    shown = [*channels, *channels[:1]]
    more = len(shown) - _SHOWN_CHANNELS
    if more > 0:
        half = _SHOWN_CHANNELS // 2
        shown = [*shown[:half], f"({more} more)", *shown[-half:]]
    return " -> ".join(shown)


def _reasons(sent_on: Sequence[Mapping[str, Any]]) -> str:
    """Return what has sent frames on, switches with the same reason together."""
    switches: dict[str, list[str]] = {}
    for step in sent_on:
        switches.setdefault(_reason(step), []).append(step["switch"])
    texts = [f"at {listed(names)} {reason}" for reason, names in switches.items()]
    return f"; sent on {_joined(texts)}" if texts else ""


def _joined(texts: Sequence[str]) -> str:
    more = len(texts) - _SHOWN_RULES
    end = f"; and at others by {more} further rules" if more > 0 else ""
    return "; ".join(texts[:_SHOWN_RULES]) + end


def _reason(step: Mapping[str, Any]) -> str:
    rule = step["rule"]
    named = None if rule is None else _rule(rule)
    if step["by"] == "rule":
        return f"by the rule {named}"
    given = "" if named is None else f", which gets it by the rule {named}"
    return f"by a packet-out of a controller{given}"


def _rule(rule: Mapping[str, Any]) -> str:
    return ", ".join(_parts(rule))


def _parts(rule: Mapping[str, Any]) -> Iterator[str]:
    yield f"table={rule['table']}"
    yield f"priority={rule['priority']}"
    if rule["match"]:
        yield rule["match"]
    yield f"cookie={rule['cookie']}"
