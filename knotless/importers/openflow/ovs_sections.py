"""A dump of all switches in one file, as ``dpctl`` of Mininet prints it.

::

    *** s1 ------------------------------------------------------------------------
     cookie=0x0, duration=5.896s, table=0, n_packets=1, dl_dst=00:00:00:00:00:01 actions=output:1
    *** s2 ------------------------------------------------------------------------
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind
from knotless.importers.openflow import ovs_fdb, ovs_flows, ovs_ports
from knotless.importers.openflow.ovs_fdb import OvsAddresses
from knotless.importers.openflow.ovs_flows import OvsRules
from knotless.importers.openflow.ovs_ports import OvsPorts

_HEAD = re.compile(r"^\*\*\* (\S{1,63}) -{20,}[ \t\r]*$", re.MULTILINE)
_KINDS = (ovs_fdb.KIND, ovs_flows.KIND, ovs_ports.KIND)
OvsDump = OvsRules | OvsPorts | OvsAddresses


@dataclass(frozen=True)
class OvsSections:
    """The name of each switch with what is said of it."""

    dumps: tuple[tuple[str, OvsDump], ...]


def _sections(text: str) -> Iterator[tuple[str, Content]]:
    """Yield the name of each switch with its lines, which keep their numbers in the file."""
    heads = [*_HEAD.finditer(text)]
    ends = [head.start() for head in heads[1:]] + [len(text)]
    for head, end in zip(heads, ends, strict=False):
        section = text[head.end() : end]
        if section.strip():
            yield head[1], Content("\n" * text.count("\n", 0, head.end()) + section)


def _read(content: Content) -> OvsSections:
    dumps = []
    for name, section in _sections(content.text):
        kind = next((kind for kind in _KINDS if kind.recognises(section)), None)
        if kind is None:
            raise RuleError(f"switch {name}: neither rules nor ports nor addresses")
        dump = kind.read(section)
        if isinstance(dump, OvsDump):
            dumps.append((name, dump))
    return OvsSections(tuple(dumps))


KIND = FileKind(
    "Open vSwitch dumps of all switches",
    "openflow",
    _HEAD,
    _read,
    lambda content: any(
        kind.recognises(section) for _, section in _sections(content.head) for kind in _KINDS
    ),
)
