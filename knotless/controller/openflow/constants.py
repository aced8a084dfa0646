"""Numbers of OpenFlow 1.3, named as in its text, section by section.

References
----------
ONF TS-012, OpenFlow Switch Specification 1.3.4, sections 7.1 to 7.5; bundles: Open Networking
Foundation, extension EXT-230; role status: extension EXT-191.

"""

from __future__ import annotations

OFP_VERSION = 0x04
OFP_HEADER_SIZE = 8
"""Bytes of the header of each message: version, type, length, transaction (``xid``)."""

# --- 7.1.1: types of messages ------------------------------------------------------------------

OFPT_HELLO = 0
OFPT_ERROR = 1
OFPT_ECHO_REQUEST = 2
OFPT_ECHO_REPLY = 3
OFPT_EXPERIMENTER = 4
OFPT_FEATURES_REQUEST = 5
OFPT_FEATURES_REPLY = 6
OFPT_GET_CONFIG_REPLY = 8
OFPT_PACKET_IN = 10
OFPT_FLOW_REMOVED = 11
OFPT_PORT_STATUS = 12
OFPT_PACKET_OUT = 13
OFPT_FLOW_MOD = 14
OFPT_GROUP_MOD = 15
OFPT_MULTIPART_REQUEST = 18
OFPT_MULTIPART_REPLY = 19
OFPT_BARRIER_REQUEST = 20
OFPT_BARRIER_REPLY = 21
OFPT_ROLE_REQUEST = 24
OFPT_ROLE_REPLY = 25

# --- 7.2.1: ports ------------------------------------------------------------------------------

OFPPC_PORT_DOWN = 1 << 0
OFPPS_LINK_DOWN = 1 << 0
OFPP_CONTROLLER = 0xFFFFFFFD
OFPP_ANY = 0xFFFFFFFF

# --- 7.2.3: matches ----------------------------------------------------------------------------

OFPMT_OXM = 1
OFPXMC_OPENFLOW_BASIC = 0x8000
OXM_FIELDS = (
    *(("in_port", 4), ("in_phy_port", 4), ("metadata", 8), ("eth_dst", 6), ("eth_src", 6)),
    *(("eth_type", 2), ("vlan_vid", 2), ("vlan_pcp", 1), ("ip_dscp", 1), ("ip_ecn", 1)),
    *(("ip_proto", 1), ("ipv4_src", 4), ("ipv4_dst", 4), ("tcp_src", 2), ("tcp_dst", 2)),
    *(("udp_src", 2), ("udp_dst", 2), ("sctp_src", 2), ("sctp_dst", 2), ("icmpv4_type", 1)),
    *(("icmpv4_code", 1), ("arp_op", 2), ("arp_spa", 4), ("arp_tpa", 4), ("arp_sha", 6)),
    *(("arp_tha", 6), ("ipv6_src", 16), ("ipv6_dst", 16), ("ipv6_flabel", 4), ("icmpv6_type", 1)),
    *(("icmpv6_code", 1), ("ipv6_nd_target", 16), ("ipv6_nd_sll", 6), ("ipv6_nd_tll", 6)),
    *(("mpls_label", 4), ("mpls_tc", 1), ("mpls_bos", 1), ("pbb_isid", 3), ("tunnel_id", 8)),
    ("ipv6_exthdr", 2),
)
"""Name and bytes of each field of OpenFlow's own class, in the order of their numbers, from 0."""
OXM_BITS = {
    **{"vlan_vid": 13, "vlan_pcp": 3, "ip_dscp": 6, "ip_ecn": 2, "ipv6_flabel": 20},
    **{"mpls_label": 20, "mpls_tc": 3, "mpls_bos": 1, "ipv6_exthdr": 9},
}
"""The bits of fields that do not fill their bytes."""

# --- 7.2.4 and 7.2.5: instructions and actions -------------------------------------------------

OFPIT_GOTO_TABLE = 1
OFPIT_WRITE_METADATA = 2
OFPIT_WRITE_ACTIONS = 3
OFPIT_APPLY_ACTIONS = 4
OFPIT_CLEAR_ACTIONS = 5
OFPIT_METER = 6

OFPAT_OUTPUT = 0
OFPAT_COPY_TTL_OUT = 11
OFPAT_COPY_TTL_IN = 12
OFPAT_SET_MPLS_TTL = 15
OFPAT_DEC_MPLS_TTL = 16
OFPAT_PUSH_VLAN = 17
OFPAT_POP_VLAN = 18
OFPAT_PUSH_MPLS = 19
OFPAT_POP_MPLS = 20
OFPAT_SET_QUEUE = 21
OFPAT_GROUP = 22
OFPAT_SET_NW_TTL = 23
OFPAT_DEC_NW_TTL = 24
OFPAT_SET_FIELD = 25
OFPAT_PUSH_PBB = 26
OFPAT_POP_PBB = 27
OFPAT_EXPERIMENTER = 0xFFFF
OFPCML_NO_BUFFER = 0xFFFF

# --- 7.3.4: changes of flow tables and groups --------------------------------------------------

OFP_NO_BUFFER = 0xFFFFFFFF
OFPTT_ALL = 0xFF
OFPFC_ADD = 0
OFPFC_MODIFY_STRICT = 2
OFPFC_DELETE_STRICT = 4
OFPGC_ADD = 0
OFPGC_MODIFY = 1
OFPGC_DELETE = 2
OFPGT_ALL = 0
OFPGT_FF = 3
OFPG_ANY = 0xFFFFFFFF

# --- 7.3.5: multipart messages -----------------------------------------------------------------

OFPMP_DESC = 0
OFPMP_FLOW = 1
OFPMP_AGGREGATE = 2
OFPMP_PORT_STATS = 4
OFPMP_GROUP = 6
OFPMP_GROUP_DESC = 7
OFPMP_PORT_DESC = 13
OFPMPF_REPLY_MORE = 1 << 0

# --- 7.3.9: roles ------------------------------------------------------------------------------

OFPCR_ROLE_NOCHANGE = 0
OFPCR_ROLE_EQUAL = 1
OFPCR_ROLE_MASTER = 2
OFPCR_ROLE_SLAVE = 3

# --- 7.4.3: reports of ports -------------------------------------------------------------------

OFPPR_DELETE = 1

# --- 7.4.4: errors; their names are in knotless.controller.openflow.error_names ------------------

OFPET_HELLO_FAILED = 0
OFPET_BAD_REQUEST = 1
OFPET_ROLE_REQUEST_FAILED = 11
OFPET_EXPERIMENTER = 0xFFFF
OFPHFC_INCOMPATIBLE = 0
OFPBRC_BAD_TYPE = 1
OFPBRC_BAD_EXPERIMENTER = 3
OFPBRC_BAD_EXP_TYPE = 4
OFPBRC_IS_SLAVE = 10

# --- 7.5.1: greetings --------------------------------------------------------------------------

OFPHET_VERSIONBITMAP = 1

# --- extensions of the Open Networking Foundation ----------------------------------------------

ONF_EXPERIMENTER_ID = 0x4F4E4600
ONF_ROLE_STATUS = 1911
"""EXT-191, as Open vSwitch sends it in OpenFlow 1.3."""
ONF_ET_BUNDLE_CONTROL = 2300
ONF_ET_BUNDLE_ADD_MESSAGE = 2301
ONF_BCT_OPEN_REQUEST = 0
ONF_BCT_COMMIT_REQUEST = 4
ONF_BF_ATOMIC = 1 << 0
ONF_BF_ORDERED = 1 << 1
