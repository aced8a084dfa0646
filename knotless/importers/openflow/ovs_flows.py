"""Rules and groups of an Open vSwitch bridge: ``ovs-ofctl dump-flows`` and ``dump-groups``.

They may name ports, whose numbers are in another file of the switch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from knotless.forwarding.openflow.ofctl_parser import KnownRules, parse_known
from knotless.importers.file_kinds import FileKind

_MARK = re.compile(
    r"^\s*(?:cookie=0x[0-9a-f]+,|table=\d+,|priority=\d+).*\bactions="
    r"|^\s*group_id=\d+,\s*type="
    r"|\A\s*(?:OFPST_(?:FLOW|GROUP_DESC)|NXST_FLOW) reply",
    re.MULTILINE,
)


@dataclass(frozen=True)
class OvsRules:
    """The text of a dump."""

    text: str

    def parsed(self, ports: Mapping[str, int]) -> KnownRules:
        """Return the rules and groups, and what is wrong with other lines."""
        return parse_known(self.text, ports)


KIND = FileKind(
    "Open vSwitch rules and groups",
    "openflow",
    _MARK,
    lambda content: OvsRules(content.text),
)
