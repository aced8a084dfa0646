"""Rules read from ovs-ofctl's OpenFlow13 text.

``parse`` reads what :mod:`knotless.forwarding.openflow.ofctl_writer` wrote, and what ``ovs-ofctl -O
OpenFlow13 dump-flows`` and ``dump-groups`` print, rules of others included as far as
:class:`knotless.forwarding.openflow.rules.Rule` can hold them. Open vSwitch's own parser is slower
and does not read its dumps (docs/decisions/libraries.md).

References
----------
ovs-ofctl(8), ovs-actions(7), ovs-fields(7).

"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter
from types import MappingProxyType
from typing import TypeVar

from knotless.base.errors import RuleError
from knotless.forwarding.openflow.rules import (
    ALL,
    CONTROLLER,
    FLOOD,
    IN_PORT,
    NORMAL,
    Action,
    Choose,
    Field,
    Group,
    Output,
    PopVlan,
    PushVlan,
    Rule,
    SetField,
    SwitchRules,
    ToGroup,
    match_order,
)
from knotless.topologies.numbering import mac_value

Read = TypeVar("Read")

MACS = ("eth_dst", "eth_src", "arp_sha", "arp_tha")
ADDRESSES = ("ipv4_src", "ipv4_dst", "arp_spa", "arp_tpa")
_NAMES = {
    "in_port": "in_port",
    "metadata": "metadata",
    "dl_dst": "eth_dst",
    "eth_dst": "eth_dst",
    "dl_src": "eth_src",
    "eth_src": "eth_src",
    "dl_type": "eth_type",
    "eth_type": "eth_type",
    "vlan_vid": "vlan_vid",
    "vlan_pcp": "vlan_pcp",
    "dl_vlan_pcp": "vlan_pcp",
    "nw_src": "ipv4_src",
    "ip_src": "ipv4_src",
    "nw_dst": "ipv4_dst",
    "ip_dst": "ipv4_dst",
    "arp_spa": "arp_spa",
    "arp_tpa": "arp_tpa",
    "arp_op": "arp_op",
    "arp_sha": "arp_sha",
    "arp_tha": "arp_tha",
    "nw_proto": "ip_proto",
    "ip_proto": "ip_proto",
}
"""ovs-ofctl's names of fields, old and new, and ours."""
_BITS = {"vlan_vid": 13, "vlan_pcp": 3, "metadata": 64, "in_port": 32, "eth_type": 16}
_PROTOCOLS = {"ip": 0x0800, "arp": 0x0806, "ipv6": 0x86DD}
_FAILOVER = ("ff", "fast_failover")
PORTS = {"IN_PORT": IN_PORT, "CONTROLLER": CONTROLLER}
_ALL_PORTS: frozenset[tuple[str, int]] = frozenset({("FLOOD", FLOOD), ("ALL", ALL)})
_PATHLESS = re.compile(r"(set_queue|meter|note):.*|dec_ttl(\(.*\))?|pop_queue")
"""Actions that do not change the path of a packet: it may be dropped, late, or have another TTL."""
TOP_PRIORITY = 0x10000
"""That of a rule which cannot be read and may have any priority."""
MAX_KNOWN = 1 << 17
"""The most texts whose meaning is kept: those of one fabric's switches are mostly the same."""
_PRESENT = 0x1000
CHOOSE = (
    "move:NXM_OF_ETH_SRC[]->NXM_NX_XXREG0[0..47],"
    "move:NXM_OF_ETH_DST[0..23]->NXM_OF_ETH_SRC[24..47],"
    "bundle_load(eth_src,{basis},hrw,ofport,OXM_OF_METADATA[0..15],members:{ports}),"
    "move:NXM_NX_XXREG0[0..47]->NXM_OF_ETH_SRC[]"
)
"""The actions of a choice; :class:`knotless.forwarding.openflow.rules.Choose` says what they do."""
# Open vSwitch before 2.15 calls members slaves.
_CHOOSE = re.compile(
    re.escape(CHOOSE)
    .replace(r"\{basis\}", "([0-9]+)")
    .replace(r"members:\{ports\}", "(?:members|slaves):([^)]+)")
)
_CHOOSE_ACTIONS = 4
PortNumbers = frozenset[tuple[str, int]]
"""Names of ports and their numbers."""
_NO_NAMES: PortNumbers = frozenset()
_IGNORED = re.compile(
    r"(duration|n_packets|n_bytes|idle_age|hard_age|idle_timeout|hard_timeout|importance)=[0-9.]+s?"
    r"|send_flow_rem|reset_counts|no_packet_counts|no_byte_counts|check_overlap"
)


def parse(flows_text: str, groups_text: str = "") -> SwitchRules:
    """Return the rules that both texts describe, sorted by table, -priority and match.

    Raises
    ------
    RuleError
        A line cannot be parsed or represented; the message names it.

    """
    rules = [
        _of_line("flow", partial(_rule_of, ports=_ALL_PORTS), *line) for line in _lines(flows_text)
    ]
    groups = [_of_line("group", _group_of, *line) for line in _lines(groups_text)]
    rules.sort(key=attrgetter("order"))
    groups.sort(key=attrgetter("group_id"))
    return SwitchRules(tuple(rules), tuple(groups))


@dataclass(frozen=True)
class KnownRules:
    """The rules and groups of a text that can be read.

    ``faults`` are what is wrong with other lines. ``unread`` are the rules on these lines, without
    their actions: each matches at least what the rule does.
    """

    rules: SwitchRules
    faults: tuple[str, ...]
    unread: tuple[Rule, ...]


def parse_known(text: str, ports: Mapping[str, int] = MappingProxyType({})) -> KnownRules:
    """Return the rules and groups in ``text`` that can be represented.

    ``ports`` are the numbers of ports that rules name, as ``ovs-ofctl --names`` writes them. Rules
    may send to the reserved ports FLOOD, ALL and NORMAL.
    """
    rules: list[Rule] = []
    groups: dict[int, Group] = {}
    faults: list[str] = []
    unread: list[Rule] = []
    numbers = frozenset(ports.items()) | _ALL_PORTS | {("NORMAL", NORMAL)}
    for number, line in _lines(text):
        try:
            if line.startswith("group_id="):
                group = _group_of(line, numbers)
                groups[group.group_id] = group
            else:
                rules.append(_rule_of(line, numbers))
        except RuleError as error:
            faults.append(f"line {number}: {error}")
            if not line.startswith("group_id="):
                unread.append(_unread_of(line, numbers))
    ordered = tuple(groups[number] for number in sorted(groups))
    known = SwitchRules(tuple(sorted(rules, key=attrgetter("order"))), ordered)
    return KnownRules(known, tuple(faults), tuple(unread))


def _unread_of(line: str, ports: PortNumbers) -> Rule:
    """Return what a rule that cannot be read matches at least, without actions."""
    head, separator, _ = line.partition("actions=")
    table, priority = 0, 0x8000
    fields: dict[str, Field] = {}
    for token in re.split(r"[,\s]+", head.strip(" ,")):
        name, _, value = token.partition("=")
        try:
            if name == "table":
                table = _number(value, 254)
            elif name == "priority":
                priority = _number(value, 0xFFFF)
            elif name != "cookie":
                for field in _fields_of(token, ports):
                    fields.setdefault(field.name, field)
        except RuleError:
            if name in ("table", "priority"):
                separator = ""
    if not separator:
        return Rule(0, TOP_PRIORITY, ())
    return Rule(table, priority, match_order(fields.values()))


def _of_line(kind: str, read: Callable[[str], Read], number: int, line: str) -> Read:
    try:
        return read(line)
    except RuleError as error:
        raise error.within(f"{kind} line {number}") from None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number, line) without comments, empty lines and the headers of dumps."""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.split("#", 1)[0].strip()
        if bare and not bare.startswith(("OFPST_", "NXST_")):
            yield number, bare


def _rule_of(line: str, ports: PortNumbers = _NO_NAMES) -> Rule:
    head, separator, instructions = line.partition("actions=")
    if not separator:
        raise RuleError("actions= is missing")
    table, priority, cookie = 0, 0x8000, 0
    fields: dict[str, Field] = {}
    for token in re.split(r"[,\s]+", head.strip(" ,")):
        name, _, value = token.partition("=")
        if name == "table":
            table = _number(value, 254)
        elif name == "priority":
            priority = _number(value, 0xFFFF)
        elif name == "cookie":
            cookie = _number(value, 2**64 - 1)
        else:
            for field in _fields_of(token, ports):
                if fields.setdefault(field.name, field) != field:
                    raise RuleError(f"{field.name} is matched twice")
    if "vlan_pcp" in fields:
        fields.setdefault("vlan_vid", Field("vlan_vid", _PRESENT, _PRESENT))
    actions, metadata, goto = _instructions_of(instructions, ports)
    return Rule(table, priority, match_order(fields.values()), actions, metadata, goto, cookie)


@lru_cache(MAX_KNOWN)
def _fields_of(token: str, ports: PortNumbers) -> tuple[Field, ...]:
    """Return the fields that a part of a match names: none for counters and flags."""
    if not token or _IGNORED.fullmatch(token):
        return ()
    name, _, value = token.partition("=")
    return tuple(_named_fields(name, value, ports))


def _named_fields(name: str, value: str, ports: PortNumbers) -> Iterator[Field]:
    if name in _PROTOCOLS and not value:
        yield Field("eth_type", _PROTOCOLS[name])
    elif name == "dl_vlan":
        number = _number(value, 0xFFFF)
        yield Field("vlan_vid", 0 if number == 0xFFFF else _PRESENT | number & 0xFFF)
    elif name == "vlan_tci":
        yield from _tci_fields(value)
    elif name == "in_port" and "/" not in value:
        yield Field("in_port", _port(value, ports))
    elif name in _NAMES:
        ours = _NAMES[name]
        number, mask = _value_and_mask(ours, value)
        if mask != 0:
            yield Field(ours, number, mask)
    else:
        raise RuleError(f"match {name!r} is not supported")


def _tci_fields(text: str) -> Iterator[Field]:
    value_text, _, mask_text = text.partition("/")
    value, mask = _number(value_text, 0xFFFF), _number(mask_text or "0xffff", 0xFFFF)
    if mask & _PRESENT and not value & _PRESENT:
        yield Field("vlan_vid", 0)
        return
    if mask & 0x1FFF:
        yield Field("vlan_vid", value & mask & 0x1FFF, _partial(mask & 0x1FFF, 13))
    if mask >> 13:
        yield Field("vlan_pcp", (value & mask) >> 13, _partial(mask >> 13, 3))


def _partial(mask: int, bits: int) -> int | None:
    return None if mask == (1 << bits) - 1 else mask


def _value_and_mask(name: str, text: str) -> tuple[int, int | None]:
    """Return the value (masked) and its mask, or None if the mask has all bits."""
    value_text, slash, mask_text = text.partition("/")
    if name in MACS:
        bits, read = 48, _mac
    elif name in ADDRESSES:
        bits, read = 32, _address
        if slash and mask_text.isdigit():
            prefix = _number(mask_text, 32)
            mask_text = str(ipaddress.IPv4Address((1 << 32) - (1 << 32 - prefix)))
    else:
        bits = _BITS.get(name, 8)

        def read(text: str) -> int:
            return _number(text, (1 << bits) - 1)

    value = read(value_text)
    if not slash:
        return value, None
    mask = read(mask_text)
    return value & mask, _partial(mask, bits)


@lru_cache(MAX_KNOWN)
def _instructions_of(
    text: str, ports: PortNumbers
) -> tuple[tuple[Action, ...], int | None, int | None]:
    # The action set, which clear_actions empties, is empty: write_actions is refused below.
    actions: list[Action] = []
    metadata: int | None = None
    goto: int | None = None
    tokens = _split(text)
    while tokens:
        if tokens[0].startswith("move:"):
            choice = _CHOOSE.fullmatch(",".join(tokens[:_CHOOSE_ACTIONS]))
            if choice is not None:
                members = tuple(_port(port, ports) for port in choice[2].split(","))
                actions.append(Choose(members, _number(choice[1], 0xFFFF)))
                tokens = tokens[_CHOOSE_ACTIONS:]
                continue
        token, *tokens = tokens
        if token.startswith("goto_table:"):
            goto = _number(token.removeprefix("goto_table:"), 254)
        elif token.startswith("write_metadata:"):
            value, _, mask = token.removeprefix("write_metadata:").partition("/")
            if mask and _number(mask, 2**64 - 1) != 2**64 - 1:
                raise RuleError("write_metadata with a mask is not supported")
            metadata = _number(value, 2**64 - 1)
        elif token not in ("drop", "clear_actions", "") and not _PATHLESS.fullmatch(token):
            actions.append(_action_of(token, ports))
    return tuple(actions), metadata, goto


def _action_of(token: str, ports: PortNumbers) -> Action:
    name, _, argument = token.partition(":")
    if token in ("pop_vlan", "strip_vlan"):
        return PopVlan()
    if token in PORTS:
        return Output(PORTS[token])
    if name == "CONTROLLER":
        return Output(CONTROLLER)
    if token.isdigit() or token.strip('"') in dict(ports):
        return Output(_port(token, ports))
    if name == "output":
        return Output(_port(argument, ports))
    if name == "enqueue":
        return Output(_port(argument.partition(":")[0], ports))
    if name == "push_vlan":
        if _number(argument, 0xFFFF) != 0x8100:
            raise RuleError(f"action {token!r} is not supported; the tag type must be 0x8100")
        return PushVlan()
    if name == "group":
        return ToGroup(_number(argument, 0xFFFFFFFF))
    if name == "set_field":
        value, arrow, field = argument.partition("->")
        if arrow and field in _NAMES:
            ours = _NAMES[field]
            number, mask = _value_and_mask(ours, value)
            if mask is None:
                return SetField(ours, number)
    if name == "mod_vlan_vid":
        return SetField("vlan_vid", _PRESENT | _number(argument, 0xFFF))
    if name == "mod_vlan_pcp":
        return SetField("vlan_pcp", _number(argument, 7))
    raise RuleError(f"action {token[:60]!r} is not supported")


def _group_of(line: str, ports: PortNumbers = _NO_NAMES) -> Group:
    head, *buckets = re.split(r",?\s*bucket=", line)
    attributes = dict(token.partition("=")[::2] for token in re.split(r"[,\s]+", head) if token)
    kind = attributes.get("type", "all")
    if kind not in ("all", "select", *_FAILOVER):
        raise RuleError(f"groups of type {kind!r} are not supported; only all, select and ff are")
    if "group_id" not in attributes:
        raise RuleError("group_id= is missing")
    lists, watch = [], []
    for bucket in buckets:
        watched = re.match(r"[^=]*?watch_port:([^,]*),", bucket)
        if kind in _FAILOVER:
            if watched is None:
                raise RuleError("a bucket of a group of type ff without a watch_port")
            watch.append(_port(watched[1], ports))
        actions, metadata, goto = _instructions_of(re.sub(r"^.*?actions=", "", bucket), ports)
        if metadata is not None or goto is not None:
            raise RuleError("a group cannot go to a table")
        lists.append(actions)
    return Group(
        _number(attributes["group_id"], 0xFFFFFF00),
        tuple(lists),
        tuple(watch),
        kind == "select",
    )


def _split(text: str) -> list[str]:
    """Split actions at commas outside parentheses."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]


def _port(text: str, ports: PortNumbers) -> int:
    """Return the number of a port that is given by number or by name, in quotes or without."""
    if text in PORTS:
        return PORTS[text]
    name = text.strip('"')
    if name in (numbers := dict(ports)):
        return numbers[name]
    if name == "LOCAL":
        raise RuleError("port LOCAL, the switch itself, is not supported")
    if not text[:1].isdecimal():
        raise RuleError(
            f"port {name[:40]!r} has no number: ovs-ofctl dump-ports-desc of the switch is needed"
        )
    return _number(text, 0xFFFFFFFF)


@lru_cache(MAX_KNOWN)
def _number(text: str, maximum: int) -> int:
    if not re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}", text):
        raise RuleError(f"{text[:40]!r} is not a number")
    value = int(text, 16) if text[:2] in ("0x", "0X") else int(text)
    if value > maximum:
        raise RuleError(f"{text} is above the maximum, {maximum:#x}")
    return value


def _mac(text: str) -> int:
    if not re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", text):
        raise RuleError(f"{text[:40]!r} is not a MAC")
    return mac_value(text)


def _address(text: str) -> int:
    try:
        return int(ipaddress.IPv4Address(text))
    except ValueError:
        raise RuleError(f"{text[:40]!r} is not an IPv4 address") from None
