"""What to run when one has changed something, and what that costs: a table of tests/README.md.

python -m tests.tiers.advice    write the table, after `python -m tests.tiers deep --store`
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.support import REPOSITORY
from tests.tiers import costs
from tests.tiers.depth import Tier

PAGE = REPOSITORY / "tests" / "README.md"
BEGIN, END = "<!-- figures: advice -->\n", "<!-- end of figures -->\n"
ADVICE: Mapping[str, tuple[str, ...]] = {
    "a routing engine": (
        *("tests/unit/routing", "tests/property/test_every_engine.py"),
        *("tests/property/test_verdicts.py", "tests/unit/verification/test_advice.py"),
    ),
    "a topology family": ("tests/unit/topologies", "tests/property/test_families.py"),
    "OpenFlow rules, 802.1Q tables": (
        "tests/unit/forwarding",
        "tests/property/test_written_rules.py",
        "tests/property/test_damaged_rules.py",
    ),
    "a reader of files of others": (
        *("tests/unit/importers", "tests/property/test_routers.py"),
        *("tests/property/test_other_files.py", "tests/property/test_hostile_input.py"),
    ),
    "verdicts, changes of routes": (
        *("tests/unit/verification", "tests/property/test_changes.py"),
        *("tests/property/test_mixture_brute_force.py", "tests/property/test_any_address.py"),
    ),
    "the simulator": ("tests/unit/simulation", "tests/property/test_simulation_cores.py"),
    "the controller": (
        *("tests/unit/controller", "tests/property/test_switches.py"),
        *("tests/property/test_restarts.py", "tests/property/test_fabric_reloads.py"),
    ),
    "a command": ("tests/unit/cli", "tests/unit/docs"),
    "an experiment": ("experiments/tests/unit", "experiments/tests/system/test_run_all.py"),
    "a page": ("tests/unit/docs", "tests/system/test_page_commands.py"),
}
"""Files and folders of tests, by what one has changed."""


def table() -> str:
    """Return the table, with the seconds of a processor at full depth that are stored."""
    stored = costs.stored()[Tier.DEEP]
    rows = ["| changed | run | s |", "|---|---|---|"]
    for changed, paths in ADVICE.items():
        spent = sum(cpu for file, (cpu, _) in stored.items() if file.startswith(paths))
        rows.append(f"| {changed} | `.venv/bin/pytest {' '.join(paths)}` | {spent:.0f} |")
    return "\n".join(rows) + "\n"


def written(text: str) -> str:
    """Return the page with the table that is stored now."""
    return re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{table()}\n{END}", text, flags=re.S)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
