"""``python -m tests.prove_changes [FABRICS] [--pairs PAIRS]``: changes of routes on random fabrics.

The seeded tests of changes, reloads and failures in the middle of them, and of changes between any
two plans of a fabric, are repeated with other seeds until they have drawn so many fabrics; 10,000
without FABRICS. ``make test-deep`` runs them once. The tiers of the pairs of plans, and the reasons
of those that were refused, are counted. With ``--pairs``, only pairs of plans are drawn.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import pytest

from tests.support import random_fabrics
from tests.support.plan_pairs import NO_SUCH_PLAN, OUTCOMES, prove, random_pair

PROPERTIES = Path(__file__).parent / "property"
FILES = ("test_changes.py", "test_plan_pairs.py", "test_other_fabrics.py", "test_fabric_reloads.py")
ROUND = 1_000_000
"""Seeds of one round; the tests use fewer."""
SAID_EVERY = 1_000
"""Seeds of pairs."""


def prove_fabrics(wanted: int) -> int:
    """Run the tests until enough fabrics were drawn; return pytest's exit status."""
    began = time.monotonic()
    while random_fabrics.drawn < wanted:
        status = pytest.main(["-q", "-x", *(str(PROPERTIES / name) for name in FILES)])
        passed = f"{random_fabrics.drawn} fabrics, {time.monotonic() - began:.0f} s"
        if status:
            sys.stdout.write(f"FAILED after {passed}; seeds from {random_fabrics.first_seed} on\n")
            return int(status)
        sys.stdout.write(f"{passed}; pairs of plans: {_outcomes()}\n")
        sys.stdout.flush()
        random_fabrics.first_seed += ROUND
    return 0


def prove_pairs(wanted: int, first: int) -> int:
    """Prove the change between so many pairs of plans; return 1 if one of them is not as it should.

    Seeds follow each other from the first one on; some draw options of which there is no plan.
    """
    began = time.monotonic()
    for seed, pick in random_fabrics.seeded(range(first, sys.maxsize)):
        pair = random_pair(pick)
        try:
            if pair is not None:
                prove(pair)
        except BaseException as error:
            sys.stdout.write(f"FAILED or interrupted at seed {seed}; {_outcomes()}\n")
            if isinstance(error, AssertionError):
                sys.stdout.write(f"options: {error}\n")
                return 1
            raise
        proven = OUTCOMES.total() - OUTCOMES[NO_SUCH_PLAN]
        if proven >= wanted or (seed + 1) % SAID_EVERY == 0:
            spent = time.monotonic() - began
            sys.stdout.write(f"{proven} pairs, seeds to {seed}, {spent:.0f} s: {_outcomes()}\n")
            sys.stdout.flush()
        if proven >= wanted:
            break
    return 0


def _outcomes() -> str:
    return ", ".join(f"{text}: {count}" for text, count in OUTCOMES.most_common())


def main() -> int:
    """Prove fabrics or pairs; return 0 only if all are as they should."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.prove_changes",
        description="Prove changes of routes on many random fabrics.",
        epilog="example: python -m tests.prove_changes --pairs 100000 --first 0",
    )
    parser.add_argument("fabrics", type=int, nargs="?", default=10_000, help="default: 10,000")
    parser.add_argument("--pairs", type=int, help="only pairs of plans, so many")
    parser.add_argument("--first", type=int, default=0, help="the first seed of pairs")
    options = parser.parse_args()
    if options.pairs is None:
        return prove_fabrics(options.fabrics)
    return prove_pairs(options.pairs, options.first)


if __name__ == "__main__":
    sys.exit(main())
