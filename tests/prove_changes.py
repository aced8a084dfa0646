"""``python -m tests.prove_changes [FABRICS]``: changes of routes on many random fabrics.

The seeded tests of changes, reloads and failures in the middle of them, and of changes between any
two plans of a fabric, are repeated with other seeds until they have drawn so many fabrics; 10,000
without FABRICS. ``make test`` runs them once. The tiers of the pairs of plans, and the reasons of
those that were refused, are counted.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.support import random_fabrics
from tests.support.plan_pairs import OUTCOMES

PROPERTIES = Path(__file__).parent / "property"
FILES = ("test_changes.py", "test_plan_pairs.py", "test_other_fabrics.py", "test_fabric_reloads.py")
ROUND = 1_000_000
"""Seeds of one round; the tests use fewer."""


def main() -> int:
    """Run the tests until enough fabrics were drawn; return pytest's exit status."""
    wanted = int(sys.argv[1]) if sys.argv[1:] else 10_000
    began = time.monotonic()
    while random_fabrics.drawn < wanted:
        status = pytest.main(["-q", "-x", *(str(PROPERTIES / name) for name in FILES)])
        passed = f"{random_fabrics.drawn} fabrics, {time.monotonic() - began:.0f} s"
        if status:
            sys.stdout.write(f"FAILED after {passed}; seeds from {random_fabrics.first_seed} on\n")
            return int(status)
        outcomes = ", ".join(f"{text}: {count}" for text, count in OUTCOMES.most_common())
        sys.stdout.write(f"{passed}; pairs of plans: {outcomes}\n")
        sys.stdout.flush()
        random_fabrics.first_seed += ROUND
    return 0


if __name__ == "__main__":
    sys.exit(main())
