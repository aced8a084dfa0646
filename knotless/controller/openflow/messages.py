"""OpenFlow 1.3 messages to a switch, as bytes.

A repair changes hundreds of rules before a frame takes a new path, so each message is written in
one go. A :class:`Request` is complete but for its transaction, by which its answer is recognised.

References
----------
ONF TS-012, OpenFlow Switch Specification 1.3.4, sections 7.1 to 7.5; for bundles, which Open
vSwitch implements, Open Networking Foundation, extension EXT-230.

"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple

from knotless.controller.openflow import constants as ofp
from knotless.controller.openflow.elements import emit_actions, emit_instructions, emit_match
from knotless.controller.reconcile import Change, GroupChange, RuleChange
from knotless.forwarding.openflow.rules import Action

_HEADER = Struct("!BBHI")
_FLOW_MOD = Struct("!QQBBHHHIIIH2x")
_GROUP_MOD = Struct("!HBxI")
_BUCKET = Struct("!HHII4x")
_EXPERIMENTER = Struct("!II")
_BUNDLE = Struct("!IHH")
_PACKET_OUT = Struct("!IIH6x")
_MULTIPART = Struct("!HH4x")
_FLOW_REQUEST = Struct("!B3xII4xQQ")
_PORT_REQUEST = Struct("!I4x")
_ROLE = Struct("!I4xQ")
_HELLO_BITMAP = Struct("!HHI")
_ERROR = Struct("!HH")
_UNRESTRICTED = (ofp.OFP_NO_BUFFER, ofp.OFPP_ANY, ofp.OFPG_ANY, 0)
"""A flow mod for no buffered packet, whatever the outputs of the rule are, and without flags."""
_ALL_COOKIE = 0xFFFFFFFFFFFFFFFF
_COMMANDS = {
    "add": (ofp.OFPFC_ADD, ofp.OFPGC_ADD),
    "modify": (ofp.OFPFC_MODIFY_STRICT, ofp.OFPGC_MODIFY),
    "delete": (ofp.OFPFC_DELETE_STRICT, ofp.OFPGC_DELETE),
}
"""Those of rules and of groups; 'strict' ones affect one rule."""

# --- messages of any type ----------------------------------------------------------------------


def encode_message(kind: int, transaction: int, body: bytes) -> bytes:
    """Return a message of any type."""
    return _HEADER.pack(ofp.OFP_VERSION, kind, _HEADER.size + len(body), transaction) + body


class Request(NamedTuple):
    """A message without its transaction: its type and its body."""

    kind: int
    body: bytes = b""

    def encode(self, transaction: int) -> bytes:
        """Return the message."""
        return encode_message(self.kind, transaction, self.body)

    def is_answered_by(self, message: bytes) -> bool:
        """Return whether a message of the same transaction has the type of its answer."""
        # In OpenFlow the number of a reply follows that of its request.
        if message[1] != self.kind + 1:
            return False
        of_multipart = self.kind == ofp.OFPT_MULTIPART_REQUEST
        return not of_multipart or message[8:10] == self.body[:2]


def multipart_request(kind: int, body: bytes = b"") -> Request:
    """Return a request for entries of a type (7.3.5)."""
    return Request(ofp.OFPT_MULTIPART_REQUEST, _MULTIPART.pack(kind, 0) + body)


def flow_request(kind: int, cookie: int | None = None) -> Request:
    """Return a request about all rules, or about those with a cookie: OFPMP_FLOW or _AGGREGATE."""
    value, mask = (0, 0) if cookie is None else (cookie, _ALL_COOKIE)
    chosen = _FLOW_REQUEST.pack(ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, value, mask)
    return multipart_request(kind, chosen + emit_match(()))


def role_request(role: int, generation: int) -> Request:
    """Return a request for a role (7.3.9)."""
    return Request(ofp.OFPT_ROLE_REQUEST, _ROLE.pack(role, generation))


def incompatible(text: str) -> Request:
    """Return the error that ends a connection without a common version (6.3.1, 7.4.4)."""
    head = _ERROR.pack(ofp.OFPET_HELLO_FAILED, ofp.OFPHFC_INCOMPATIBLE)
    return Request(ofp.OFPT_ERROR, head + text.encode("ascii"))


HELLO = Request(
    ofp.OFPT_HELLO, _HELLO_BITMAP.pack(ofp.OFPHET_VERSIONBITMAP, 8, 1 << ofp.OFP_VERSION)
)
"""A greeting that offers OpenFlow 1.3 alone (7.5.1)."""
FEATURES_REQUEST = Request(ofp.OFPT_FEATURES_REQUEST)
ECHO_REQUEST = Request(ofp.OFPT_ECHO_REQUEST)
BARRIER_REQUEST = Request(ofp.OFPT_BARRIER_REQUEST)
PORT_DESC_REQUEST = multipart_request(ofp.OFPMP_PORT_DESC)
GROUP_DESC_REQUEST = multipart_request(ofp.OFPMP_GROUP_DESC)
PORT_STATS_REQUEST = multipart_request(ofp.OFPMP_PORT_STATS, _PORT_REQUEST.pack(ofp.OFPP_ANY))

# --- changes -----------------------------------------------------------------------------------


def encode(change: Change, transaction: int) -> bytes:
    """Return the message for ``change``, which affects no other entry.

    Raises KeyError for a field that OpenFlow does not define, and OverflowError or struct.error
    for a number that does not fit.
    """
    if isinstance(change, RuleChange):
        return encode_message(ofp.OFPT_FLOW_MOD, transaction, _flow_mod(change))
    return encode_message(ofp.OFPT_GROUP_MOD, transaction, _group_mod(change))


def bundle(number: int, messages: Sequence[bytes], transactions: Sequence[int]) -> bytes:
    """Return a bundle: messages that a switch processes in this order, all at once or not at all.

    ``transactions`` are the ids of opening and committing it; the messages have their own. The
    replies say nothing that is not known from the barrier reply that follows; what is refused is
    reported by an error message.
    """
    opened, committed = transactions
    parts = [_bundle_message(opened, number, ofp.ONF_BCT_OPEN_REQUEST)]
    for message in messages:
        *_, transaction = _HEADER.unpack_from(message)
        parts.append(_bundle_message(transaction, number, added=message))
    parts.append(_bundle_message(committed, number, ofp.ONF_BCT_COMMIT_REQUEST))
    return b"".join(parts)


def encode_packet_out(actions: Iterable[Action], frame: bytes) -> bytes:
    """Return a message that has a switch do ``actions`` with a frame of ours."""
    body = emit_actions(actions)
    head = _PACKET_OUT.pack(ofp.OFP_NO_BUFFER, ofp.OFPP_CONTROLLER, len(body))
    return encode_message(ofp.OFPT_PACKET_OUT, 0, head + body + frame)


def _bundle_message(transaction: int, number: int, command: int = 0, added: bytes = b"") -> bytes:
    kind = ofp.ONF_ET_BUNDLE_ADD_MESSAGE if added else ofp.ONF_ET_BUNDLE_CONTROL
    head = _EXPERIMENTER.pack(ofp.ONF_EXPERIMENTER_ID, kind)
    flags = ofp.ONF_BF_ATOMIC | ofp.ONF_BF_ORDERED
    body = head + _BUNDLE.pack(number, command, flags) + added
    return encode_message(ofp.OFPT_EXPERIMENTER, transaction, body)


def _flow_mod(change: RuleChange) -> bytes:
    rule, is_delete = change.rule, change.command == "delete"
    command, _ = _COMMANDS[change.command]
    # Delete only our own entry: another controller may have replaced it in the meantime.
    cookie_mask = _ALL_COOKIE if is_delete else 0
    fixed = _FLOW_MOD.pack(
        rule.cookie, cookie_mask, rule.table, command, 0, 0, rule.priority, *_UNRESTRICTED
    )
    match = emit_match(rule.match)
    if is_delete:
        return fixed + match
    return fixed + match + emit_instructions(rule.actions, rule.metadata, rule.goto)


def _group_mod(change: GroupChange) -> bytes:
    group = change.group
    _, command = _COMMANDS[change.command]
    kind = ofp.OFPGT_FF if group.watch else ofp.OFPGT_ALL
    parts = [_GROUP_MOD.pack(command, kind, group.group_id)]
    if change.command != "delete":
        watch = group.watch or (ofp.OFPP_ANY,) * len(group.buckets)
        for port, bucket in zip(watch, group.buckets, strict=True):
            actions = emit_actions(bucket)
            parts.append(_BUCKET.pack(_BUCKET.size + len(actions), 0, port, ofp.OFPG_ANY))
            parts.append(actions)
    return b"".join(parts)
