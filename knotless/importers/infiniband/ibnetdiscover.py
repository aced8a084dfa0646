"""Output of ``ibnetdiscover``: the nodes and cables of an InfiniBand subnet."""

from __future__ import annotations

import re

from knotless.importers.file_kinds import FileKind
from knotless.topologies.formats.ibnetdiscover import discovered

_RECORD = re.compile(r'^(Switch|Ca|Rt)\s+\d+\s+"[SHR]-', re.MULTILINE)


KIND = FileKind("ibnetdiscover", "infiniband", _RECORD, lambda content: discovered(content.text))
