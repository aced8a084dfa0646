"""``python -m tests.prove``: what every engine promises, on 1,000 generated fabrics each.

The tests draw 40. Each fabric's plan is compiled, and its rules are walked for every pair of
hosts and every broadcast; fabrics that an engine must refuse are not counted.
"""

from __future__ import annotations

import sys

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.property.test_every_engine import PROMISES, Promise, promise_holds


def prove(promise: Promise, wanted: int) -> int:
    """Walk ``wanted`` fabrics or more; return how many. AssertionError where one fails."""
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
    """Prove every engine, or those named, on as many fabrics as the first argument says."""
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
