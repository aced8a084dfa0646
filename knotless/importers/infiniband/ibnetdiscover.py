"""Output of ``ibnetdiscover``: the nodes and cables of an InfiniBand subnet."""

from __future__ import annotations

import re

from knotless.importers.file_kinds import Content, FileKind
from knotless.topologies.formats.ibnetdiscover import discovered

_RECORD = re.compile(r'^(Switch|Ca|Rt)\s+\d+\s+"[SHR]-', re.MULTILINE)


def _recognises(content: Content) -> bool:
    return _RECORD.search(content.head) is not None


KIND = FileKind(
    "ibnetdiscover", "infiniband", _recognises, lambda content: discovered(content.text)
)
