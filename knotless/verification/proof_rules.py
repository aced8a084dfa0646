"""Text of rules as far as the specification of proofs covers it.

The specification (``proofs/Spec.v``) has the matches and actions of our own unicast and multicast
plans: ports, addresses, VLAN tags and metadata; tags, outputs, groups of types all, select and fast
failover, choices of a port by a hash, and later tables. A rule that tests other fields as well, as
those of ARP, may match or not. What the specification does not cover is named here, before a proof
is written that nobody could check.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from knotless.topologies.numbering import mac_value
from knotless.verification.address_classes import EXACT, Cube

_NUMBER = r"(?:0x[0-9a-f]{1,15}|[0-9]{1,18})"
_MASKED = rf"{_NUMBER}(?:/{_NUMBER})?"
_MAC = r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}"
_OTHER_FIELDS = (
    *("eth_type", "arp_op", "arp_sha", "arp_tha", "arp_spa", "arp_tpa"),
    *("nw_src", "nw_dst", "nw_proto"),
)
"""Fields of which proofs know nothing."""
_FIELDS = {
    "cookie": _NUMBER,
    "table": _NUMBER,
    "priority": _NUMBER,
    "in_port": r"[0-9]+",
    "eth_dst": rf"{_MAC}(?:/{_MAC})?",
    "eth_src": rf"{_MAC}(?:/{_MAC})?",
    "vlan_vid": _MASKED,
    "vlan_pcp": r"[0-7]",
    "metadata": _MASKED,
    **dict.fromkeys(_OTHER_FIELDS, r"[0-9a-fA-Fx:./]+"),
}
_FIELD = "(?:" + "|".join(f"{name}={value}" for name, value in _FIELDS.items()) + ")"
_SEND = (
    r"(?:push_vlan:0x8100|pop_vlan|set_field:[0-9]+->vlan_(?:vid|pcp)|output:[0-9]+|IN_PORT"
    r"|group:[0-9]+)"
)
_LATER = rf"(?:write_metadata:{_MASKED}|goto_table:[0-9]+)"
_CHOICE = (
    r"move:NXM_OF_ETH_SRC\[\]->NXM_NX_XXREG0\[0\.\.47\],"
    r"move:NXM_OF_ETH_DST\[0\.\.23\]->NXM_OF_ETH_SRC\[24\.\.47\],"
    r"bundle_load\(eth_src,[0-9]+,hrw,ofport,OXM_OF_METADATA\[0\.\.15\],members:[0-9]+(?:,[0-9]+)*\),"
    r"move:NXM_NX_XXREG0\[0\.\.47\]->NXM_OF_ETH_SRC\[\],goto_table:[0-9]+"
)
_RULE = re.compile(
    rf"{_FIELD}(?:,{_FIELD})* actions="
    rf"(?:drop|{_CHOICE}|(?:{_SEND}|{_LATER})(?:,{_SEND})*(?:,{_LATER})*)"
)
_BUCKET = rf"actions=(?:drop|{_SEND}(?:,{_SEND})*)"
_GROUP = re.compile(
    rf"group_id=[0-9]+,type=(?:(?:all|select)(?:,bucket={_BUCKET})*"
    rf"|ff(?:,bucket=watch_port:[0-9]+,{_BUCKET})*)"
)
_PRIORITY_WITHOUT_TAG = re.compile(r"vlan_pcp=(?!.*vlan_vid=0x1)")
_MORE = re.compile(rf"\b(?:{'|'.join(_OTHER_FIELDS)})=")
_ACTIONS = re.compile(rf"(?:{_SEND}|{_LATER}|drop)")
_DESTINATION = re.compile(r"\beth_dst=([0-9a-fA-F:]+)(?:/([0-9a-fA-F:]+))?")


def not_covered(flows: str, groups: str) -> str:
    """Return what a switch has in its texts of ovs-ofctl that proofs do not cover; empty: nothing.

    Text that only ``ovs-ofctl dump-flows`` writes, such as counters, is not covered either.
    """
    reasons = (
        reason
        for text, reason_of in ((groups, _group_reason), (flows, _rule_reason))
        for line in text.splitlines()
        for reason in [reason_of(line)]
        if reason
    )
    return next(reasons, "")


def tests_other_fields(flows: str) -> bool:
    """Tell whether some rule of a switch tests fields of which proofs know nothing."""
    return _MORE.search(flows) is not None


def _group_reason(line: str) -> str:
    if not line or _GROUP.fullmatch(line):
        return ""
    return "indirect groups" if ",type=indirect" in line else f"the group {line[:80]!r}"


def _rule_reason(line: str) -> str:
    if not line:
        return ""
    if _PRIORITY_WITHOUT_TAG.search(line):
        return "a match of vlan_pcp without a tag"
    if _RULE.fullmatch(line):
        return ""
    match, _, actions = line.partition(" actions=")
    for part in match.split(","):
        name, _, value = part.partition("=")
        if name not in _FIELDS:
            return f"matches of {name.strip()[:40]}"
        if not re.fullmatch(_FIELDS[name], value):
            return f"the match {part[:60]}"
    if "bundle_load" in actions:
        return "choices by another hash than ours (bundle_load)"
    for action in actions.split(","):
        if not _ACTIONS.fullmatch(action):
            return f"the action {action[:60]}"
    return f"the order of the actions {actions[:80]}"


def destination_patterns(flows: Iterable[str]) -> Counter[Cube]:
    """Return the patterns of destination addresses that the rules of switches test.

    ``flows`` has a text for each switch. Also returned is how many switches test each pattern.
    """
    written = Counter(pattern for text in flows for pattern in {*_DESTINATION.findall(text)})
    patterns = Counter[Cube]()
    for (value, masked), switches in written.items():
        mask = mac_value(masked) if masked else EXACT
        patterns[Cube(mac_value(value) & mask, mask)] += switches
    return patterns
