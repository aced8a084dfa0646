"""``python -m tests.prove``: the guarantees of every engine, on 1,000 generated fabrics each.

The tests draw 40. Each fabric's plan is compiled, and its rules are walked for every pair of
hosts and every broadcast; fabrics that an engine must refuse are not counted. Then as many plans
with foreign rules, and fabrics of routers with default routes and unread ports, are judged; packets
to any address are followed one by one beside it. ``python -m tests.prove 100 foreign routers``
does these two, on 100 fabrics each.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.property.test_any_address import foreign_rules_agree
from tests.property.test_every_engine import PROMISES, Promise, promise_holds
from tests.property.test_routers import any_address_agrees


def prove(promise: Promise, wanted: int) -> int:
    """Check at least ``wanted`` fabrics; return how many. AssertionError if one fails."""
    walked = 0
    number = 0
    while walked < wanted:
        number += 1

        @seed(number)
        @settings(
            max_examples=max(50, wanted - walked),
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(data=st.data())
        def draw(data: st.DataObject) -> None:
            nonlocal walked
            walked += promise_holds(promise, data)

        draw()
    return walked


def prove_foreign(wanted: int) -> tuple[int, int]:
    """Judge plans with foreign rules; return how many can deadlock, and how many cannot."""
    verdicts: Counter[bool | None] = Counter()
    for drawn in count(1_000_000):
        if verdicts[True] + verdicts[False] >= wanted:
            break
        verdicts[foreign_rules_agree(random.Random(drawn))] += 1  # noqa: S311 - repeatable
    return verdicts[False], verdicts[True]


def prove_routers(wanted: int) -> tuple[int, int]:
    """Judge routers in the same way, with default routes, unread ports, or both."""
    verdicts: Counter[bool | None] = Counter()
    for drawn in range(1_000_000, 1_000_000 + wanted):
        with TemporaryDirectory() as folder:
            verdicts[any_address_agrees(drawn, Path(folder))] += 1
    return verdicts[False], verdicts[True]


FAMILIES = {"foreign": prove_foreign, "routers": prove_routers}


def main() -> None:
    """Check every engine and family, or those named, on as many fabrics as the first argument."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for promise in PROMISES:
        if len(sys.argv) < 3 or promise.engine in sys.argv[2:]:
            kept = "acyclic, " if promise.acyclic else ""
            kept += "minimal, " if promise.minimal else ""
            walked = prove(promise, wanted)
            print(  # noqa: T201 - its output
                f"{promise.engine}: {walked} fabrics walked: {kept}everything delivered", flush=True
            )
    for name, family in FAMILIES.items():
        if len(sys.argv) < 3 or name in sys.argv[2:]:
            unsafe, safe = family(wanted)
            print(  # noqa: T201 - its output
                f"{name}: {unsafe} fabrics can deadlock, {safe} cannot, as packets followed one by"
                " one say",
                flush=True,
            )


if __name__ == "__main__":
    main()
