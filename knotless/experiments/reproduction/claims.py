"""The pages and claims of all papers, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from knotless.experiments.reproduction.claim import Claim, Section
from knotless.experiments.reproduction.sections_000 import SECTIONS_000
from knotless.experiments.reproduction.sections_001 import SECTIONS_001
from knotless.experiments.reproduction.sections_002 import SECTIONS_002
from knotless.experiments.reproduction.sections_003 import SECTIONS_003
from knotless.experiments.reproduction.sections_004 import SECTIONS_004

TITLES = {
    "000": "Koibuchi et al., deterministic deadlock-free routings on the RHiNET-2 cluster",
    "001": "Iwasaki et al., fast user-level barriers on a PC cluster with Ethernet",
    "002": "Shimizu and Nakashima, all-to-all on the Latin-square fat-tree",
    "003": "Yamamoto et al., RHiNET-1: primitives of remote memory",
    "004": "Otsuka et al., switch-tagged VLAN routing",
}
SECTIONS: Mapping[str, Sequence[Section]] = {
    "000": SECTIONS_000,
    "001": SECTIONS_001,
    "002": SECTIONS_002,
    "003": SECTIONS_003,
    "004": SECTIONS_004,
}
CLAIMS: Sequence[Claim] = [
    claim for sections in SECTIONS.values() for section in sections for claim in section.claims
]
