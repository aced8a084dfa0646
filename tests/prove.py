"""``python -m tests.prove``: the guarantees of every engine, on 1,000 generated fabrics each.

The tests draw 40. Each fabric's plan is compiled, and its rules are walked for every pair of
hosts and every broadcast; fabrics that an engine must refuse are not counted.
"""

from __future__ import annotations

import sys

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.property.test_every_engine import PROMISES, Promise, promise_holds


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


def main() -> None:
    """Check every engine, or those named, on the number of fabrics in the first argument."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for promise in PROMISES:
        if len(sys.argv) < 3 or promise.engine in sys.argv[2:]:
            kept = "acyclic, " if promise.acyclic else ""
            kept += "minimal, " if promise.minimal else ""
            walked = prove(promise, wanted)
            print(  # noqa: T201 - its output
                f"{promise.engine}: {walked} fabrics walked: {kept}everything delivered", flush=True
            )


if __name__ == "__main__":
    main()
