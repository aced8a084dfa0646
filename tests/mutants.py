"""Plant faults in the modules that decide, and see whether the gate finds what deep tests find.

    python -m tests.mutants CHECKOUT --seed 1 --count 25
    python -m tests.mutants CHECKOUT --seed 1 --count 15 --core

CHECKOUT is a clean clone with its own ``.venv``, which is changed and put right again. A fault is
one operator or constant that is another one. The files of tests that it can reach run as in the
gate; if none fails, at full depth; each for ten minutes at most. A fault that deep tests do not
find does not count, as it may change nothing. Prints a line of JSON for each fault, and at the end
how many of those that deep tests find the gate finds too.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

DECIDING = (
    "knotless/routing",
    "knotless/forwarding",
    "knotless/verification",
    "knotless/importers",
    "knotless/controller/updates",
    "knotless/controller/election",
    "knotless/controller/probes",
    "knotless/topologies",
    "knotless/traffic",
    "knotless/simulation",
)
CORE = ("core/graph/src", "core/forwarding/src", "core/switch-model/src", "core/simulator/src")
SWAPS = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    **{"+": "-", "-": "+", "and": "or", "or": "and", "True": "False", "False": "True"},
    **{"min": "max", "max": "min", "any": "all", "all": "any", "0": "1", "1": "2", "2": "3"},
}
RUST_SWAPS = {
    **{" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == "},
    **{" + 1": " + 2", " - 1": " - 2", " && ": " || ", " || ": " && ", ".min(": ".max("},
    **{".max(": ".min(", "return true": "return false", "return false": "return true"},
}
LIMIT_S = 600
UNDECIDED = 124
"""The exit status of a command that takes longer than ``LIMIT_S``: that of timeout(1)."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file: ``old`` at ``offset`` becomes ``new``."""

    file: str
    line: int
    offset: int
    old: str
    new: str


def of_python(root: Path) -> Iterator[Mutant]:
    """Yield all faults of the modules in Python."""
    for folder in DECIDING:
        for path in sorted((root / folder).rglob("*.py")):
            text = path.read_text()
            starts = [0]
            for line in text.splitlines(keepends=True):
                starts.append(starts[-1] + len(line))
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                row, column = token.start
                if token.string in SWAPS and not token.line.lstrip().startswith(("@", "import")):
                    offset = starts[row - 1] + column
                    file = str(path.relative_to(root))
                    yield Mutant(file, row, offset, token.string, SWAPS[token.string])


def of_core(root: Path) -> Iterator[Mutant]:
    """Yield all faults of the Rust code, outside of its tests and comments."""
    pattern = re.compile("|".join(map(re.escape, sorted(RUST_SWAPS, key=len, reverse=True))))
    for folder in CORE:
        for path in sorted((root / folder).rglob("*.rs")):
            if "tests" in path.name:
                continue
            text = path.read_text().partition("#[cfg(test)]")[0]
            for found in pattern.finditer(text):
                line = text[: found.start()].count("\n") + 1
                if (
                    "//" not in text.splitlines()[line - 1]
                    and "assert" not in text[: found.start()].rpartition("\n")[2]
                ):
                    file = str(path.relative_to(root))
                    yield Mutant(file, line, found.start(), found[0], RUST_SWAPS[found[0]])


def _call(root: Path, *words: str) -> tuple[int, str]:
    """Run a command; one that takes too long ends with its children, such as workers of xdist."""
    with subprocess.Popen(
        words,
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return UNDECIDED, ""
    return process.returncode, said


def _found(root: Path, tier: str, files: Sequence[str], deeper: Sequence[str]) -> str | None:
    """Return the first test that fails; empty if none does, None if that takes too long.

    A worker gets one test after the other: it runs all that it has been given also after -x.
    """
    words = ["-q", "-x", "-n", "2", "--dist=load", "--maxschedchunk=1", f"--tier={tier}"]
    words += ["--timeout=120", "--timeout-method=thread"]  # no signal ends a loop in Rust
    words += ["-p", "no:randomly", "-p", "no:cacheprovider", f"--deeper={','.join(deeper)}"]
    status, said = _call(root, ".venv/bin/python", "-m", "pytest", *words, *files)
    if status == UNDECIDED:
        return None
    failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "" if status in (0, 5) else (failed or [said[-300:]])[0][:200]


CHOOSE = """
import json, sys
from tests.tiers import costs, reach
from tests.tiers.depth import FABRICS
reached = reach.of_checkout().tests_reached([sys.argv[1]])
left_out = (*FABRICS, "tests/system/test_wheel.py")  # it builds for minutes
pure = {file: steps for file, steps in reached.items() if not file.startswith(left_out)}
chosen = costs.deeper(pure, costs.stored(), 360, (), 0).chosen
print(json.dumps([sorted(pure, key=lambda file: (pure[file], file)), chosen]))
"""


def judged(root: Path, mutant: Mutant) -> dict[str, object]:
    """Plant a fault, and return which tests find it in the gate, and else in deep."""
    path = root / mutant.file
    original = path.read_text()
    end = mutant.offset + len(mutant.old)
    path.write_text(original[: mutant.offset] + mutant.new + original[end:])
    began = time.monotonic()
    try:
        row: dict[str, object] = asdict(mutant)
        if mutant.file.startswith("core/"):
            status, said = _call(root, "tools/native.sh", "--setup")
            if status != 0:
                return {**row, "gate": None, "deep": None, "built": said[-200:]}
            status, said = _call(root, "tools/rust-tests.sh", "gate")
            if status != 0:
                lines = [line for line in said.splitlines() if "FAILED" in line]
                return {**row, "gate": (lines or ["cargo test"])[0], "deep": "gate"}
        _, said = _call(root, ".venv/bin/python", "-c", CHOOSE, mutant.file)
        files, chosen = json.loads(said.splitlines()[-1])
        gate = _found(root, "gate", files, chosen)
        deep = "gate" if gate else _found(root, "deep", files, ())
        return {**row, "gate": gate, "deep": deep, "seconds": round(time.monotonic() - began)}
    finally:
        path.write_text(original)


def main() -> int:
    """Draw faults until so many are found by deep tests; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--skip", type=int, default=0, help="faults that were judged before")
    parser.add_argument("--core", action="store_true", help="faults of the Rust code")
    asked = parser.parse_args()
    root = asked.checkout.resolve()
    mutants = list((of_core if asked.core else of_python)(root))
    by_file: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_file.setdefault(mutant.file, []).append(mutant)
    rng = random.Random(asked.seed)  # noqa: S311 - repeatable, not secret
    gate = deep = 0
    for _ in range(asked.skip):
        rng.choice(by_file[rng.choice(sorted(by_file))])
    try:
        while deep < asked.count:
            row = judged(root, rng.choice(by_file[rng.choice(sorted(by_file))]))
            deep += bool(row["deep"])
            gate += bool(row["gate"])
            sys.stdout.write(json.dumps(row) + "\n")
            sys.stdout.flush()
    finally:
        if asked.core:
            _call(root, "tools/native.sh", "--setup")  # without the last fault
    sys.stdout.write(f"the gate finds {gate} of {deep} that deep tests find\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
