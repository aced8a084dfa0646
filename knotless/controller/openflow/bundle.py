"""Bundles: changes that a switch makes all at once, or not at all.

OpenFlow 1.3 has them as an extension, which Open vSwitch implements: Open Networking Foundation,
"Bundle" extension EXT-230. The replies say nothing that is not known from the barrier reply that
follows; what is refused is reported by an error message.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from ryu.ofproto import ofproto_v1_3 as ofp

EXPERIMENTER = 0x4F4E4600
CONTROL, ADD = 2300, 2301
OPEN, COMMIT = 0, 4
_ATOMIC, _ORDERED = 1, 2
_HEADER = Struct("!BBHIII")
_BODY = Struct("!IHH")


def bundle(number: int, messages: Sequence[bytes], transactions: Sequence[int]) -> bytes:
    """Return a bundle of messages, to be made in this order, all at once.

    ``transactions`` are the ids of opening and committing it; the messages have their own.
    """
    opened, committed = transactions
    parts = [_message(opened, CONTROL, _BODY.pack(number, OPEN, _ATOMIC | _ORDERED))]
    for message in messages:
        transaction = int.from_bytes(message[4:8], "big")
        added = _BODY.pack(number, 0, _ATOMIC | _ORDERED) + message
        parts.append(_message(transaction, ADD, added))
    parts.append(_message(committed, CONTROL, _BODY.pack(number, COMMIT, _ATOMIC | _ORDERED)))
    return b"".join(parts)


def _message(transaction: int, kind: int, body: bytes) -> bytes:
    length = _HEADER.size + len(body)
    header = _HEADER.pack(
        ofp.OFP_VERSION, ofp.OFPT_EXPERIMENTER, length, transaction, EXPERIMENTER, kind
    )
    return header + body
