"""The claims of all papers, in order."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.reproduction.claim import Claim
from experiments.reproduction.paper_000 import PAPER_000
from experiments.reproduction.paper_001 import PAPER_001
from experiments.reproduction.paper_002 import PAPER_002
from experiments.reproduction.paper_003 import PAPER_003
from experiments.reproduction.paper_004 import PAPER_004
from experiments.reproduction.paper_004_deadlocks import DEADLOCKS_004
from experiments.reproduction.programs import PROGRAMS_000, PROGRAMS_004

CLAIMS: Sequence[Claim] = [
    *PAPER_000,
    *PROGRAMS_000,
    *PAPER_001,
    *PAPER_002,
    *PAPER_003,
    *PAPER_004,
    *DEADLOCKS_004,
    *PROGRAMS_004,
]
