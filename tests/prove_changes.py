"""``python -m tests.prove_changes [FABRICS] [--pairs PAIRS]``: changes of routes on random fabrics.

The seeded tests of changes, reloads and failures in the middle of them, and of changes between any
two plans of a fabric, are repeated with other seeds until they have drawn so many fabrics; 10,000
without FABRICS. ``make test-deep`` runs them once. The tiers of the pairs of plans, and the reasons
of those that were refused, are counted. With ``--pairs``, only pairs of plans are drawn. ``--into``
stores their counts; where the file has some of the same commit, the series goes on after them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bench.support.entry import about, as_stored, machine_line
from knotless.base.errors import KnotlessError
from knotless.base.files import read_text, write_whole
from knotless.base.package import commit
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
        sys.stdout.write(f"{passed}; pairs of plans: {_listed(OUTCOMES)}\n")
        sys.stdout.flush()
        random_fabrics.first_seed += ROUND
    return 0


class _Proven(NamedTuple):
    """What came out of the pair of a seed, and the time of processor; ``failed``: the error."""

    seed: int
    outcome: str
    processor_s: float
    failed: str | None = None


def _prove_pair(offset: int, seed: int) -> _Proven:
    """Prove the change between the plans of a seed, to which ``offset`` is added."""
    random_fabrics.first_seed = offset
    OUTCOMES.clear()
    began = time.process_time()
    ((_, pick),) = random_fabrics.seeded([seed])
    try:
        pair = random_pair(pick)
        if pair is not None:
            prove(pair)
    except Exception as error:  # noqa: BLE001 - the seed, which repeats it, is not lost
        return _Proven(seed, "", time.process_time() - began, repr(error))
    (outcome,) = OUTCOMES
    return _Proven(seed, outcome, time.process_time() - began)


def prove_pairs(wanted: int, first: int, into: Path | None = None, jobs: int = 1) -> int:
    """Prove the change between so many pairs of plans; return 1 if one of them is not as it should.

    Seeds follow each other from the first one on; some draw options of which there is no plan.
    ``into`` is the file of counts. Raises KnotlessError if it has those of another series.
    """
    begun, spent_s, following, outcomes = about(), 0.0, first, Counter[str]()
    if into is not None and into.exists():
        kept = _kept(into, first)
        outcomes.update({row["outcome"]: row["seeds"] for row in kept["rows"]})
        following, spent_s = kept["next"], kept["processor_s"]
    for proven in _proven_from(following, jobs):
        spent_s += proven.processor_s
        if proven.failed is not None:
            sys.stdout.write(f"FAILED at seed {proven.seed}; {_listed(outcomes)}\n")
            sys.stdout.write(f"{proven.failed}\n")
            return 1
        outcomes[proven.outcome] += 1
        pairs = outcomes.total() - outcomes[NO_SUCH_PLAN]
        if pairs < wanted and (proven.seed + 1) % SAID_EVERY:
            continue
        text = f"{pairs} pairs, seeds to {proven.seed}, {spent_s:.0f} s: {_listed(outcomes)}\n"
        sys.stdout.write(text)
        sys.stdout.flush()
        if into is not None:
            rows = [{"outcome": text, "seeds": n} for text, n in outcomes.most_common()]
            span = {"first": first, "next": proven.seed + 1, "offset": random_fabrics.first_seed}
            stored = as_stored(begun, **span, processor_s=round(spent_s), rows=rows)
            write_whole(into, stored + "\n", KnotlessError)
        if pairs >= wanted:
            break
    return 0


def _proven_from(first: int, jobs: int) -> Iterator[_Proven]:
    """Prove the pairs of all seeds from the first one on, in their order."""
    one = partial(_prove_pair, random_fabrics.first_seed)
    if jobs == 1:
        yield from map(one, count(first))
        return
    with get_context("spawn").Pool(jobs) as pool:
        for begin in count(first, SAID_EVERY):
            yield from pool.imap(one, range(begin, begin + SAID_EVERY), chunksize=10)


def _kept(into: Path, first: int) -> Mapping[str, Any]:
    """Return the counts of a series that goes on. Raises KnotlessError if they are of another."""
    kept: Mapping[str, Any] = json.loads(read_text(into, KnotlessError))
    series = (kept["versions"]["commit"], kept["first"], kept["offset"])
    if series != (commit(), first, random_fabrics.first_seed):
        raise KnotlessError(f"{into}: has pairs of another commit or other seeds: name a new file")
    return kept


def table_of(stored: Mapping[str, Any]) -> list[str]:
    """Return the counts of a stored series of pairs, for docs/explanation/verdicts.md."""
    rows = stored["rows"]
    pairs = sum(row["seeds"] for row in rows if row["outcome"] != NO_SUCH_PLAN)
    return [
        f"Of {stored['next'] - stored['first']:,} seeds {pairs:,} drew a pair of plans that there "
        f"are, and the change of each was as it should be, in {stored['processor_s']:,} s of "
        f"processor, at commit {stored['versions']['commit'][:10]}:",
        "",
        "| outcome | seeds |",
        "|---|---|",
        *(f"| {row['outcome']} | {row['seeds']:,} |" for row in rows),
        "",
        machine_line(stored),
    ]


def _listed(outcomes: Counter[str]) -> str:
    return ", ".join(f"{text}: {seeds}" for text, seeds in outcomes.most_common())


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
    parser.add_argument("--into", type=Path, help="a file for the counts of pairs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes for pairs")
    options = parser.parse_args()
    if options.pairs is None:
        return prove_fabrics(options.fabrics)
    try:
        return prove_pairs(options.pairs, options.first, options.into, options.jobs)
    except KnotlessError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
