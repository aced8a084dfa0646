"""Entries of the lists of rules and groups, kept as bytes: Ryu needs 100 us to parse one.

A controller that starts again reads a hundred thousand rules. Most of their matches, instructions
and actions are alike, so :mod:`knotless.controller.openflow.messages` parses each only once.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

_FIXED = Struct(ofp.OFP_FLOW_STATS_0_PACK_STR)
_MATCH_LENGTH = Struct("!2xH")
_GROUP = Struct(ofp.OFP_GROUP_DESC_STATS_PACK_STR)
_BUCKET = Struct(ofp.OFP_BUCKET_PACK_STR)
_ACTION = Struct("!HH")


class FlowEntry:
    """An entry (``ofp_flow_stats``) that the guard has checked.

    ``is_plain`` is whether it has neither time-outs nor flags. It has Ryu's attributes too, for
    other applications: they are parsed when they are asked for.
    """

    __slots__ = (
        *("cookie", "data", "instruction_bytes", "is_plain", "length", "match_bytes", "packets"),
        *("priority", "table"),
    )

    def __init__(self, data: bytes) -> None:
        self.data = data
        fixed = _FIXED.unpack_from(data)
        self.length, self.table, _, _, self.priority, *times, self.cookie, self.packets, _ = fixed
        self.is_plain = not any(times)  # two time-outs, and the flags
        (match_length,) = _MATCH_LENGTH.unpack_from(data, _FIXED.size)
        end = _FIXED.size + (match_length + 7) // 8 * 8
        self.match_bytes, self.instruction_bytes = data[_FIXED.size : end], data[end:]

    @classmethod
    def parser(cls, buffer: bytes, offset: int) -> FlowEntry:
        """Return the entry at ``offset``; Ryu calls this for each entry of a reply."""
        length = int.from_bytes(buffer[offset : offset + 2], "big")
        return cls(bytes(buffer[offset : offset + length]))

    def __getattr__(self, name: str) -> Any:
        return getattr(parser.OFPFlowStats.parser(self.data, 0), name)


class GroupEntry:
    """An entry of a group description (``ofp_group_desc``) that the guard has checked.

    ``buckets`` are the watched port and the actions of each. It has Ryu's attributes too.
    """

    __slots__ = ("data", "group_id", "length", "type")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.length, self.type, self.group_id = _GROUP.unpack_from(data)

    @classmethod
    def parser(cls, buffer: bytes, offset: int) -> GroupEntry:
        """Return the entry at ``offset``; Ryu calls this for each entry of a reply."""
        length = int.from_bytes(buffer[offset : offset + 2], "big")
        return cls(bytes(buffer[offset : offset + length]))

    def bucket_bytes(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield the watched port of each bucket, and each of its actions."""
        at = ofp.OFP_GROUP_DESC_STATS_SIZE
        while at < self.length:
            length, _, watch_port, _ = _BUCKET.unpack_from(self.data, at)
            end, actions = at + length, []
            at += ofp.OFP_BUCKET_SIZE
            while at < end:
                _, size = _ACTION.unpack_from(self.data, at)
                actions.append(self.data[at : at + size])
                at += size
            yield watch_port, actions

    def __getattr__(self, name: str) -> Any:
        return getattr(parser.OFPGroupDescStats.parser(self.data, 0), name)


def install() -> None:
    """Have Ryu keep the entries of the lists of rules and groups as bytes."""
    parser.OFPFlowStatsReply.cls_stats_body_cls = FlowEntry
    parser.OFPGroupDescStatsReply.cls_stats_body_cls = GroupEntry
