"""Whether the two ends of a link agree: on pausing, frames, rates and repetition. Pure rules.

Settings of one end alone are right or wrong only together with those of the other. Each rule here
takes what is known of both ends, from files of switches or from settings of ours; what is not known
of an end breaks no rule.

References
----------
IEEE 802.3-2022, 31B (PAUSE), 28 and 73 (auto-negotiation), 91 and 108 (RS-FEC); IEEE 802.1Q-2018,
36 (PFC); Ultra Ethernet Specification 1.0, link layer (link level retry, credits).

"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["off", "pause", "pfc", "credits"]
_OTHERS: Mapping[Kind | None, str] = {"off": "no flow control", "pause": "PAUSE", "pfc": "PFC"}
"""What is not credits, as messages show it."""


@dataclass(frozen=True)
class LinkEnd:
    """The facts about one end of a link, called ``SWITCH:PORT``; None: not known.

    ``pauses`` are the priorities for which it sends pauses, ``obeys`` those whose pauses stop it.
    ``fec`` is ``rs``, ``fc`` or ``none``; ``autoneg`` whether it negotiates its rate and FEC;
    ``unit_bytes`` is a unit of its credits, ``repeats`` whether it repeats damaged frames.
    """

    name: str
    flow_control: Kind | None = None
    pauses: frozenset[int] | None = None
    obeys: frozenset[int] | None = None
    mtu_bytes: int | None = None
    rate_mbps: float | None = None
    fec: str | None = None
    autoneg: bool | None = None
    unit_bytes: int | None = None
    repeats: bool | None = None


class Disagreement(NamedTuple):
    """A fact on which two ends differ, in one line; ``loses``: lossless packets can be lost.

    ``about`` is the attribute of both ends of which they do not agree.
    """

    about: str
    text: str
    loses: bool


def disagreements(a: LinkEnd, b: LinkEnd) -> list[Disagreement]:
    """Return what the two ends of a link do not agree on, each with what follows."""
    of_link = [one for rule in _OF_LINK for one in rule(a, b)]
    of_senders = [one for rule in _OF_SENDER for one in (*rule(a, b), *rule(b, a))]
    return [*of_senders, *of_link]


def _lossless_there_only(one: LinkEnd, other: LinkEnd) -> Iterator[Disagreement]:
    kinds = {one.flow_control, other.flow_control} - {None, "off"}
    if one.pauses is None or len(kinds) > 1:
        return
    not_paused = one.pauses - (one.pauses if other.pauses is None else other.pauses)
    not_obeyed = one.pauses - (one.pauses if other.obeys is None else other.obeys)
    for priority in sorted(not_paused | not_obeyed)[:1]:
        does_not = {
            (True, True): "neither pauses nor obeys",
            (True, False): "does not pause",
            (False, True): "does not obey",
        }[priority in not_paused, priority in not_obeyed]
        yield Disagreement(
            "pauses",
            f"{one.name} has priority {priority} lossless, which {other.name} {does_not}: its"
            " packets can be lost",
            loses=True,
        )


def _long_frames(sender: LinkEnd, receiver: LinkEnd) -> Iterator[Disagreement]:
    long, most = sender.mtu_bytes, receiver.mtu_bytes
    if long is not None and most is not None and long > most:
        yield Disagreement(
            "mtu_bytes",
            f"{sender.name} sends packets of up to {long} bytes (MTU), of which {receiver.name}"
            f" takes no more than {most}: longer ones are lost",
            loses=True,
        )


def _waits_for_credit(sender: LinkEnd, receiver: LinkEnd) -> Iterator[Disagreement]:
    if sender.flow_control == "credits" and receiver.flow_control in _OTHERS:
        yield Disagreement(
            "flow_control",
            f"{sender.name} waits for credits, which {receiver.name} never gives, with"
            f" {_OTHERS[receiver.flow_control]}: packets stand still",
            loses=False,
        )


def _kinds(a: LinkEnd, b: LinkEnd) -> Iterator[Disagreement]:
    if {a.flow_control, b.flow_control} == {"pause", "pfc"}:
        one, other = (a, b) if a.flow_control == "pause" else (b, a)
        yield Disagreement(
            "flow_control",
            f"{one.name} has PAUSE, and {other.name} PFC: neither obeys the other, and packets can"
            " be lost",
            loses=True,
        )


def _units(a: LinkEnd, b: LinkEnd) -> Iterator[Disagreement]:
    if a.flow_control == b.flow_control == "credits" and _differ(a.unit_bytes, b.unit_bytes):
        yield Disagreement(
            "unit_bytes",
            f"{a.name} counts credits of {a.unit_bytes} bytes, and {b.name} of {b.unit_bytes}:"
            " packets can be lost, or stand still",
            loses=True,
        )


def _repetition(a: LinkEnd, b: LinkEnd) -> Iterator[Disagreement]:
    if _differ(a.repeats, b.repeats):
        one, other = (a, b) if a.repeats else (b, a)
        yield Disagreement(
            "repeats",
            f"{one.name} repeats damaged frames, and {other.name} does not: what {other.name}"
            f" sends can be lost, and {one.name} waits for answers that do not come",
            loses=True,
        )


def _rates(a: LinkEnd, b: LinkEnd) -> Iterator[Disagreement]:
    if _differ(a.rate_mbps, b.rate_mbps) and not (a.autoneg or b.autoneg):
        yield Disagreement(
            "rate_mbps",
            f"{a.name} has {a.rate_mbps:g} Mbit/s, and {b.name} {b.rate_mbps:g}: the link stays"
            " down",
            loses=False,
        )


def _fec(a: LinkEnd, b: LinkEnd) -> Iterator[Disagreement]:
    are_fixed = {a.fec, b.fec} <= _FEC and not (a.autoneg or b.autoneg)
    if are_fixed and _differ(a.fec, b.fec):
        yield Disagreement(
            "fec",
            f"{a.name} has FEC {a.fec}, and {b.name} {b.fec}: the link stays down",
            loses=False,
        )


def _negotiation(a: LinkEnd, b: LinkEnd) -> Iterator[Disagreement]:
    if _differ(a.autoneg, b.autoneg):
        one, other = (a, b) if a.autoneg else (b, a)
        yield Disagreement(
            "autoneg",
            f"{one.name} negotiates its rate, and {other.name} does not: the link can stay down",
            loses=False,
        )


_FEC = {"none", "fc", "rs"}
_Rule = Callable[[LinkEnd, LinkEnd], Iterator[Disagreement]]
_OF_SENDER: tuple[_Rule, ...] = (_lossless_there_only, _long_frames, _waits_for_credit)
"""Rules of one end towards the other."""
_OF_LINK: tuple[_Rule, ...] = (_kinds, _units, _repetition, _rates, _fec, _negotiation)
"""Rules of both ends alike."""


def _differ(one: object, other: object) -> bool:
    """Tell whether two facts are known, and not the same."""
    return one is not None and other is not None and one != other
