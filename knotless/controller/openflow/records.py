"""Structures of OpenFlow 1.3 that switches send, declared field by field.

Each is a tuple of its fields, in the order and with the names of the standard; the annotation of a
field is its form on the wire, padding included, in the notation of :mod:`struct`. A :class:`Layout`
reads it. What follows a structure (a match, entries, data) is read elsewhere.

References
----------
ONF TS-012, OpenFlow Switch Specification 1.3.4, sections 7.1 to 7.4.

"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Annotated, Generic, NamedTuple, TypeVar, get_type_hints

Record = TypeVar("Record", bound=tuple[object, ...])
U8 = Annotated[int, "B"]
U16 = Annotated[int, "H"]
U32 = Annotated[int, "I"]
U64 = Annotated[int, "Q"]


class Layout(Generic[Record]):
    """The form of a structure on the wire; ``size`` is in bytes."""

    def __init__(self, record: Callable[..., Record]) -> None:
        fields = get_type_hints(record, include_extras=True).values()
        self._struct = Struct("!" + "".join(field.__metadata__[0] for field in fields))
        self._record = record
        self.size = self._struct.size

    def read(self, data: bytes | bytearray, offset: int = 0) -> Record:
        """Return the structure at an offset; raises struct.error if ``data`` ends before it."""
        return self._record(*self._struct.unpack_from(data, offset))


class Header(NamedTuple):
    """``ofp_header`` (7.1), at the beginning of each message; ``xid`` is its transaction."""

    version: U8
    type: U8
    length: U16
    xid: U32


class SwitchFeatures(NamedTuple):
    """``ofp_switch_features`` (7.3.1): who a switch is."""

    datapath_id: U64
    n_buffers: U32
    n_tables: U8
    auxiliary_id: Annotated[int, "B2x"]
    capabilities: U32
    reserved: U32


class Port(NamedTuple):
    """``ofp_port`` (7.2.1)."""

    port_no: Annotated[int, "I4x"]
    hw_addr: Annotated[bytes, "6s2x"]
    name: Annotated[bytes, "16s"]
    config: U32
    state: U32
    curr: U32
    advertised: U32
    supported: U32
    peer: U32
    curr_speed: U32
    max_speed: U32


class PortStatus(NamedTuple):
    """``ofp_port_status`` (7.4.3): why a port is reported; the :class:`Port` follows."""

    reason: Annotated[int, "B7x"]


class ErrorMessage(NamedTuple):
    """``ofp_error_msg`` (7.4.4); the request that was refused follows, or its beginning."""

    type: U16
    code: U16


class ExperimenterError(NamedTuple):
    """``ofp_error_experimenter_msg`` (7.4.4), if the type is OFPET_EXPERIMENTER."""

    type: U16
    exp_type: U16
    experimenter: U32


class PacketIn(NamedTuple):
    """``ofp_packet_in`` (7.4.1); a match and, after two bytes, the frame follow."""

    buffer_id: U32
    total_len: U16
    reason: U8
    table_id: U8
    cookie: U64


class FlowRemoved(NamedTuple):
    """``ofp_flow_removed`` (7.4.2); a match follows."""

    cookie: U64
    priority: U16
    reason: U8
    table_id: U8
    duration_sec: U32
    duration_nsec: U32
    idle_timeout: U16
    hard_timeout: U16
    packet_count: U64
    byte_count: U64


class RoleReply(NamedTuple):
    """``ofp_role_request`` (7.3.9), which also is the reply."""

    role: Annotated[int, "I4x"]
    generation_id: U64


class MultipartReply(NamedTuple):
    """``ofp_multipart_reply`` (7.3.5); the entries of the type follow."""

    type: U16
    flags: Annotated[int, "H4x"]


class FlowStats(NamedTuple):
    """``ofp_flow_stats`` (7.3.5.2): a rule; its match and its instructions follow."""

    length: U16
    table_id: Annotated[int, "Bx"]
    duration_sec: U32
    duration_nsec: U32
    priority: U16
    idle_timeout: U16
    hard_timeout: U16
    flags: Annotated[int, "H4x"]
    cookie: U64
    packet_count: U64
    byte_count: U64


class AggregateStats(NamedTuple):
    """``ofp_aggregate_stats_reply`` (7.3.5.3): the sums of the rules that were asked for."""

    packet_count: U64
    byte_count: U64
    flow_count: Annotated[int, "I4x"]


class PortStats(NamedTuple):
    """``ofp_port_stats`` (7.3.5.6): the counters of a port."""

    port_no: Annotated[int, "I4x"]
    rx_packets: U64
    tx_packets: U64
    rx_bytes: U64
    tx_bytes: U64
    rx_dropped: U64
    tx_dropped: U64
    rx_errors: U64
    tx_errors: U64
    rx_frame_err: U64
    rx_over_err: U64
    rx_crc_err: U64
    collisions: U64
    duration_sec: U32
    duration_nsec: U32


class GroupDesc(NamedTuple):
    """``ofp_group_desc`` (7.3.5.10): a group; its buckets follow."""

    length: U16
    type: Annotated[int, "Bx"]
    group_id: U32


class Bucket(NamedTuple):
    """``ofp_bucket`` (7.3.4.2); its actions follow."""

    length: U16
    weight: U16
    watch_port: U32
    watch_group: Annotated[int, "I4x"]


HEADER = Layout(Header)
SWITCH_FEATURES = Layout(SwitchFeatures)
PORT = Layout(Port)
PORT_STATUS = Layout(PortStatus)
ERROR = Layout(ErrorMessage)
EXPERIMENTER_ERROR = Layout(ExperimenterError)
PACKET_IN = Layout(PacketIn)
FLOW_REMOVED = Layout(FlowRemoved)
ROLE_REPLY = Layout(RoleReply)
MULTIPART_REPLY = Layout(MultipartReply)
FLOW_STATS = Layout(FlowStats)
AGGREGATE_STATS = Layout(AggregateStats)
PORT_STATS = Layout(PortStats)
GROUP_DESC = Layout(GroupDesc)
BUCKET = Layout(Bucket)
BODY = HEADER.size
ENTRIES = HEADER.size + MULTIPART_REPLY.size
"""Offsets of the body of a message, and of the entries of a multipart reply."""
