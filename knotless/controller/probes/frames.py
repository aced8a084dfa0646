"""Probes as frames, the messages that send and bring them, and the rules for them. Pure.

A probe carries the dpid and the port of its sender, and a tag that only this controller can
compute: a keyed hash of the sender and the round. So nobody else can forge one, and an old one
counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2s
from ipaddress import IPv4Address
from operator import attrgetter
from secrets import compare_digest
from struct import Struct

from knotless.base.probe_source import PROBE_SOURCE
from knotless.controller import runtime
from knotless.controller.openflow.messages import encode_packet_out
from knotless.controller.reconcile import PROBE_COOKIE, Change, FoundRule, RuleChange
from knotless.forwarding.openflow.rules import (
    ADMISSION,
    CONTROLLER,
    IN_PORT,
    Action,
    Field,
    Output,
    Rule,
    SetField,
    match_order,
)
from knotless.topologies.validate import is_host_address

ROUNDS_VALID = 4096
"""Older probes are ignored; a paused port may have held them for minutes."""
_VLAN_TPID = 0x8100
_TAG_BYTES = 8
_CONTENT = Struct("!4s?QI8s")
_MAGIC = b"KNPR"
_TYPE_AT = 12


@dataclass(frozen=True)
class Probe:
    """A probe that has arrived: who sent it, and whether the next switch was to send it back."""

    dpid: int
    port: int
    reflected: bool
    number: int
    """The round in which it was sent."""


class Frames:
    """Writes and reads the probes of one controller.

    ``priority`` is that of their tag, without a VLAN; None: they are untagged. ``per_port``: each
    is bound to its port, so that a host that gets one cannot make it that of another port. That
    takes a message for each port.
    """

    def __init__(self, priority: int | None, *, per_port: bool = False) -> None:
        self._key, self._per_port = runtime.random_bytes(32), per_port
        tag = b"" if priority is None else Struct("!HH").pack(_VLAN_TPID, priority << 13)
        self._type = tag + ETHER_TYPE.to_bytes(2, "big")
        self.round = 0

    def packet_out(self, dpid: int, ports: Iterable[int], *, reflected: bool) -> bytes:
        """Return what has a switch send a probe from each of its ``ports``."""
        if not self._per_port:
            return self._message(dpid, ports, 0, reflected=reflected)
        return b"".join(self._message(dpid, (port,), port, reflected=reflected) for port in ports)

    def _message(self, dpid: int, ports: Iterable[int], bound: int, *, reflected: bool) -> bytes:
        source = int.from_bytes(PROBE_SOURCE, "big") << 24
        actions = [
            action
            for port in ports
            for action in (SetField("eth_src", source | port), Output(port))
        ]
        destination = TO_NEIGHBOUR_AND_BACK if reflected else TO_NEIGHBOUR
        proof = self._proof(dpid, bound, self.round, reflected=reflected)
        content = _CONTENT.pack(_MAGIC, reflected, dpid, self.round, proof)
        frame = destination.to_bytes(6, "big") + PROBE_SOURCE + bytes(3) + self._type + content
        return encode_packet_out(actions, frame)

    def read(self, frame: bytes) -> Probe | None:
        """Return the probe in a frame, or None if it is none of ours."""
        offset = _TYPE_AT + len(self._type)
        if frame[6:9] != PROBE_SOURCE or frame[_TYPE_AT:offset] != self._type:
            return None
        if len(frame) < offset + _CONTENT.size:
            return None
        magic, reflected, dpid, number, proof = _CONTENT.unpack_from(frame, offset)
        if magic != _MAGIC or not 0 <= self.round - number < ROUNDS_VALID:
            return None
        port = int.from_bytes(frame[9:12], "big")
        right = self._proof(dpid, port if self._per_port else 0, number, reflected=reflected)
        return Probe(dpid, port, reflected, number) if compare_digest(proof, right) else None

    def _proof(self, dpid: int, port: int, number: int, *, reflected: bool) -> bytes:
        text = _CONTENT.pack(_MAGIC, reflected, dpid, number, port.to_bytes(_TAG_BYTES, "big"))
        return blake2s(text, key=self._key, digest_size=_TAG_BYTES).digest()


# --- frames of hosts --------------------------------------------------------------------------

_ARP = b"\x08\x06"
_IPV4 = b"\x08\x00"
_LINK_LOCAL = b"\x01\x80\xc2\x00\x00"
"""Addresses of frames for the next switch only (IEEE 802.1Q, 8.6.3): bridges send them too."""
_HEAD = 14
_ARP_ETHERNET_IPV4 = b"\x00\x01\x08\x00\x06\x04"


@dataclass(frozen=True)
class Sender:
    """The sender of a frame; ``ip`` is its IPv4 address, if the frame has one for a host."""

    mac: int
    ip: str | None


def sender_of(frame: bytes) -> Sender | None:
    """Return the host that has sent a frame, or None if it shows none.

    Frames of protocols between neighbours do not, nor do tagged ones and those with an address that
    no host may have.
    """
    source = int.from_bytes(frame[6:12], "big")
    if len(frame) < _HEAD or source == 0 or frame[6] & 1 or frame[:5] == _LINK_LOCAL:
        return None
    kind = frame[12:_HEAD]
    if kind == _ARP and frame[14:20] == _ARP_ETHERNET_IPV4 and frame[22:28] == frame[6:12]:
        return Sender(source, _address(frame[28:32]))
    if kind == _IPV4:
        return Sender(source, _address(frame[26:30]))
    if kind == b"\x81\x00" or kind == b"\x88\xa8":
        return None
    return Sender(source, None)


def _address(data: bytes) -> str | None:
    if len(data) < IPv4Address(0).max_prefixlen // 8:
        return None
    address = IPv4Address(data)
    return str(address) if is_host_address(address) else None


# --- rules ------------------------------------------------------------------------------------

ETHER_TYPE = 0x88B5
"""Local experiments (IEEE 802)."""
TO_NEIGHBOUR = 0x0180C200000E
"""Destination of probes that the next switch gives to its controller."""
TO_NEIGHBOUR_AND_BACK = 0x0180C2000003
"""Destination of probes that the next switch sends back, even without a controller."""
_PROBE_PRIORITY = 0xFFFF
_BLOCK_PRIORITY = 0xFFFE


def probe_rules(ports: Iterable[int], blocked: Iterable[int]) -> tuple[Rule, ...]:
    """Return the rules of a switch for its ports to other switches.

    Probes are accepted from these ports only, so that no host can send one. Of ``blocked`` ports
    only probes are accepted.
    """
    rules = []
    for port in sorted(ports):
        rules.append(_rule(port, TO_NEIGHBOUR, (Output(CONTROLLER),)))
        back = (SetField("eth_dst", TO_NEIGHBOUR), Output(IN_PORT))
        rules.append(_rule(port, TO_NEIGHBOUR_AND_BACK, back))
    for port in sorted(blocked):
        match = (Field("in_port", port),)
        rules.append(Rule(ADMISSION, _BLOCK_PRIORITY, match, (), cookie=PROBE_COOKIE))
    return tuple(rules)


def learning_rules(
    ports: Iterable[int], host_ports: Iterable[int], open_ports: Iterable[int]
) -> frozenset[Rule]:
    """Return the rules of a switch for ``ports`` of which nothing is declared.

    Probes come to the controller. What hosts send to ``host_ports`` is dropped, so that rules
    of an earlier fabric do not forward it; from ``open_ports`` it comes to the controller as well.
    """
    wanted = set(open_ports)
    rules = {_rule(port, TO_NEIGHBOUR, (Output(CONTROLLER),)) for port in ports}
    for port in host_ports:
        match = (Field("in_port", port),)
        actions = (Output(CONTROLLER),) if port in wanted else ()
        rules.add(Rule(ADMISSION, _BLOCK_PRIORITY, match, actions, cookie=PROBE_COOKIE))
    return frozenset(rules)


def without_ports(rules: Iterable[Rule], ports: Iterable[int]) -> frozenset[Rule]:
    """Return the rules but for those of some ports."""
    gone = {Field("in_port", port) for port in ports}
    return frozenset(rule for rule in rules if gone.isdisjoint(rule.match))


def _rule(port: int, destination: int, actions: tuple[Action, ...]) -> Rule:
    match = match_order(
        (
            Field("in_port", port),
            Field("eth_dst", destination),
            Field("eth_type", ETHER_TYPE),
        )
    )
    return Rule(ADMISSION, _PROBE_PRIORITY, match, actions, cookie=PROBE_COOKIE)


def may_take_probes(others: Iterable[FoundRule]) -> bool:
    """Return whether rules of others may match probes in place of those of probes."""
    return any(each.table == ADMISSION and each.priority >= _PROBE_PRIORITY for each in others)


def held_probe_rules(rules: Sequence[FoundRule]) -> frozenset[Rule]:
    """Return the rules of probes that a switch holds."""
    return frozenset(
        held.rule for held in rules if held.cookie == PROBE_COOKIE and held.rule is not None
    )


def probe_rule_changes(held: Iterable[Rule], wanted: Iterable[Rule]) -> tuple[Change, ...]:
    """Return what gives a switch the ``wanted`` rules."""
    before, after = frozenset(held), frozenset(wanted)
    kept = {rule.key for rule in after}
    new = sorted(after - before, key=attrgetter("order"))
    old = sorted(before - after, key=attrgetter("order"))
    gone = (RuleChange("delete", rule) for rule in old if rule.key not in kept)
    return (*(RuleChange("add", rule) for rule in new), *gone)
