"""Names of the errors that switches report: ONF TS-012 (OpenFlow 1.3.4), section 7.4.4."""

from __future__ import annotations

_CODES = (
    # OFPET_HELLO_FAILED is 0; the others follow in the order of their numbers.
    ("OFPHFC", "INCOMPATIBLE EPERM"),
    (
        "OFPBRC",
        "BAD_VERSION BAD_TYPE BAD_MULTIPART BAD_EXPERIMENTER BAD_EXP_TYPE EPERM BAD_LEN"
        " BUFFER_EMPTY BUFFER_UNKNOWN BAD_TABLE_ID IS_SLAVE BAD_PORT BAD_PACKET"
        " MULTIPART_BUFFER_OVERFLOW",
    ),
    (
        "OFPBAC",
        "BAD_TYPE BAD_LEN BAD_EXPERIMENTER BAD_EXP_TYPE BAD_OUT_PORT BAD_ARGUMENT EPERM TOO_MANY"
        " BAD_QUEUE BAD_OUT_GROUP MATCH_INCONSISTENT UNSUPPORTED_ORDER BAD_TAG BAD_SET_TYPE"
        " BAD_SET_LEN BAD_SET_ARGUMENT",
    ),
    (
        "OFPBIC",
        "UNKNOWN_INST UNSUP_INST BAD_TABLE_ID UNSUP_METADATA UNSUP_METADATA_MASK BAD_EXPERIMENTER"
        " BAD_EXP_TYPE BAD_LEN EPERM",
    ),
    (
        "OFPBMC",
        "BAD_TYPE BAD_LEN BAD_TAG BAD_DL_ADDR_MASK BAD_NW_ADDR_MASK BAD_WILDCARDS BAD_FIELD"
        " BAD_VALUE BAD_MASK BAD_PREREQ DUP_FIELD EPERM",
    ),
    (
        "OFPFMFC",
        "UNKNOWN TABLE_FULL BAD_TABLE_ID OVERLAP EPERM BAD_TIMEOUT BAD_COMMAND BAD_FLAGS",
    ),
    (
        "OFPGMFC",
        "GROUP_EXISTS INVALID_GROUP WEIGHT_UNSUPPORTED OUT_OF_GROUPS OUT_OF_BUCKETS"
        " CHAINING_UNSUPPORTED WATCH_UNSUPPORTED LOOP UNKNOWN_GROUP CHAINED_GROUP BAD_TYPE"
        " BAD_COMMAND BAD_BUCKET BAD_WATCH EPERM",
    ),
    ("OFPPMFC", "BAD_PORT BAD_HW_ADDR BAD_CONFIG BAD_ADVERTISE EPERM"),
    ("OFPTMFC", "BAD_TABLE BAD_CONFIG EPERM"),
    ("OFPQOFC", "BAD_PORT BAD_QUEUE EPERM"),
    ("OFPSCFC", "BAD_FLAGS BAD_LEN EPERM"),
    ("OFPRRFC", "STALE UNSUP BAD_ROLE"),
    (
        "OFPMMFC",
        "UNKNOWN METER_EXISTS INVALID_METER UNKNOWN_METER BAD_COMMAND BAD_FLAGS BAD_RATE BAD_BURST"
        " BAD_BAND BAD_BAND_VALUE OUT_OF_METERS OUT_OF_BANDS",
    ),
    ("OFPTFFC", "BAD_TABLE BAD_METADATA BAD_TYPE BAD_LEN BAD_ARGUMENT EPERM"),
)
_NAMES = {
    (kind, code): f"{prefix}_{name}"
    for kind, (prefix, names) in enumerate(_CODES)
    for code, name in enumerate(names.split())
}


def error_name(kind: int, code: int) -> str:
    """Return OpenFlow's name of an error, and its code, such as ``OFPFMFC_TABLE_FULL(1)``.

    An error that OpenFlow 1.3 does not define is called by its numbers.
    """
    return f"{_NAMES.get((kind, code), f'error {kind}')}({code})"
