"""Run one tier: checks, tests of the core, tests without and with fabrics, and what they cost.

    python -m tests.tiers gate                 what `make test` runs
    python -m tests.tiers changed              what a change can reach, at full depth
    python -m tests.tiers deep | night

Every part runs, whatever has failed before; the exit status is 0 if nothing has. A test that fails
is kept in ``tests/kept`` and runs first in every tier until it passes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from tests.tiers import costs, reach
from tests.tiers.depth import FABRICS, SEED_FILE, Tier, stored_seed
from tests.tiers.parts import Run

BUDGET_S = 180.0
"""Seconds that files which a change can reach may take longer in the gate, on all processors."""
MORE_FABRICS = 6
BUILDS = {"tests/system/test_wheel.py"}
"""Files of tests that compile for minutes where nothing has been built: they never run deeper."""


def _deeper(base: str | None, budget_s: float, max_fabrics: int) -> costs.Choice:
    """Return the files that a change can reach and that run deeper; say what does not fit."""
    changed = reach.changed_files(base)
    if changed is None and base is not None:
        raise SystemExit(f"tests.tiers: no commit {base} here: give one that `git log` shows")
    if changed is None:
        print("no git, or no commit to compare with: no file runs deeper")
        return costs.Choice((), ())
    files, since = changed
    reached = reach.of_checkout().tests_reached(files)
    if budget_s < float("inf"):
        reached = {file: steps for file, steps in reached.items() if file not in BUILDS}
    with_fabrics = {file for file in reached if file.startswith(FABRICS)}
    choice = costs.deeper(reached, costs.stored(), budget_s, with_fabrics, max_fabrics)
    print(f"{len(files)} files differ from {since}; {len(reached)} files of tests use them:")
    print(f"  {len(choice.chosen)} run deeper: {' '.join(choice.chosen) or '-'}")
    if choice.left:
        print(f"  {len(choice.left)} do not fit (`make test-deep`): {' '.join(choice.left)}")
    return choice


def main() -> int:
    """Run a tier; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.tiers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tier", choices=[*Tier, "changed"])
    parser.add_argument("--base", help="the commit that a change is compared with")
    parser.add_argument(
        "--store", action="store_true", help="keep what files cost in tests/costs.json"
    )
    asked = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    if asked.tier == Tier.NIGHT:
        os.environ.setdefault("SEED", str(stored_seed() + 1))
    seed = stored_seed()
    print(f"tier {asked.tier}, seed {seed}")
    run = Run(Tier.GATE if asked.tier == "changed" else Tier(asked.tier), asked.store)
    run.kept()
    status = 0
    if asked.tier == "changed":
        chosen = _deeper(asked.base, float("inf"), sys.maxsize).chosen
        run.checks()
        run.core()
        run.tests(chosen, only=chosen)
    elif asked.tier == Tier.GATE:
        chosen = _deeper(asked.base, BUDGET_S * run.workers, MORE_FABRICS).chosen
        run.checks()
        run.core()
        run.tests(chosen)
    else:
        if asked.tier == Tier.NIGHT:  # fewer examples of a property are not the first of more
            gate = Run(Tier.GATE)
            gate.core()
            gate.tests(())
            status = gate.summary()
            run.night()
        run.checks()
        run.core()
        run.tests(())
    status = run.summary() or status
    if asked.tier == Tier.NIGHT and status == 0:
        SEED_FILE.write_text(f"{seed}\n")
        print(f"seed {seed} is now that of all tiers: commit tests/SEED")
    return status


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
