"""Plant faults in the modules that decide, and list those that no test finds.

    python -m tests.mutants --seed 1 --count 80
    python -m tests.mutants --seed 1 --count 30 --core

A fault is another operator or constant, a condition that always holds, two arguments swapped, or a
function that returns at once. Each is planted alone, in a clone of the last commit in ``build/``.
For one in Rust, the tests of its crate run first. Then the files of tests that reach it run, the
nearest and cheapest first, until one fails: as many as cost ``BUDGET_S`` by ``tests/costs.json``,
half of it for those that run at full depth. Limits count processor time, so a busy machine changes
no result. A line of JSON for each fault goes to a file in ``build/`` that the seed and the commit
name: a run that was stopped goes on behind its last line.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support import REPOSITORY

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
BUDGET_S = 60
"""Seconds of processor time of the tests that run for one fault, by their stored costs."""
BATCH = 12
"""So many files of tests are collected at once: the nearest mostly find the fault."""
CORE_LIMIT_S = 900
"""Seconds of processor time in which a crate is built and its tests run."""
MEMORY_BYTES = 8 << 30
"""Address space of one process: a fault that makes a list grow for ever ends here."""
POLL_S = 1.0
IDLE_S = 600.0
"""A command waits for ever that has used no processor for so long on the clock."""
TOO_LONG = 124
"""The exit status of a command that takes longer than its limit: that of timeout(1)."""
NOT_COMPILED = "could not compile"


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
                    if token.line[:column].endswith("strict="):
                        continue  # of sequences that are as long, it changes nothing
                    offset = starts[row - 1] + column
                    file = str(path.relative_to(root))
                    yield Mutant(file, row, offset, token.string, SWAPS[token.string])
            yield from _of_statements(str(path.relative_to(root)), text, starts)


def _outside_strings(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it; those in f-strings have no places of their own."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.JoinedStr):
            yield from _outside_strings(child)


def _of_statements(file: str, text: str, starts: Sequence[int]) -> Iterator[Mutant]:
    """Yield faults of one file that are larger than a word; ``starts`` are the offsets of lines."""
    lines = text.splitlines()

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def place(node: ast.expr | ast.stmt) -> tuple[int, int]:
        end = offset(node.end_lineno or 0, node.end_col_offset or 0)
        return offset(node.lineno, node.col_offset), end

    for node in _outside_strings(ast.parse(text)):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test):
                start, end = place(test)
                if text[start:end] != "TYPE_CHECKING":
                    yield Mutant(file, test.lineno, start, text[start:end], "True")
            case ast.Call(args=[first, second, *_]):
                (a, b), (c, d) = place(first), place(second)
                swapped = text[c:d] + text[b:c] + text[a:b]
                if swapped != text[a:d] and "*" not in (text[a], text[c]):
                    yield Mutant(file, first.lineno, a, text[a:d], swapped)
            case ast.FunctionDef(body=[ast.Expr(value=ast.Constant()), statement, *_]):
                early = f"return None\n{' ' * statement.col_offset}"
                yield Mutant(file, statement.lineno, place(statement)[0], "", early)


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


def _processor_s(session: int) -> float:
    """Return the processor time of the processes of a session, and of their ended children."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def call(root: Path, *words: str, limit_s: float | None = None) -> tuple[int, str]:
    """Run a command, and return its exit status and what it printed.

    ``limit_s`` is processor time, that of children included. A command that takes longer ends with
    all its children, and so does one that waits for ever.
    """
    with subprocess.Popen(
        ("prlimit", f"--as={MEMORY_BYTES}", *words),
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'experiments'}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        spent_s, moved_s = 0.0, time.monotonic()
        while True:
            try:
                said, _ = process.communicate(timeout=POLL_S)
            except subprocess.TimeoutExpired:
                if (now_s := _processor_s(process.pid)) > spent_s:
                    spent_s, moved_s = now_s, time.monotonic()
                is_idle = time.monotonic() - moved_s > IDLE_S
                if limit_s and (is_idle or spent_s > limit_s):
                    os.killpg(process.pid, signal.SIGKILL)
                    what = "waits for ever" if is_idle else f"takes more than {limit_s:.0f} s"
                    return TOO_LONG, f"it {what}"
            else:
                return process.returncode, said


def _failure(status: int, said: str) -> str:
    """Return the first test that failed; empty if all passed, or none was there."""
    if status in (0, 5):
        return ""
    lines = said.splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR")) or "FAILED" in line]
    return (failed or [said[-300:]])[0][:200]


def _killer(root: Path, files: Sequence[str], deeper: Sequence[str], cost_s: float) -> str:
    """Return the first test that fails; empty if none does.

    Files that take four times their stored cost have met the fault as well.
    """
    words = ["-q", "-x", "--tier=gate", f"--deeper={','.join(deeper)}"]
    words += ["--timeout=1800", "--timeout-method=thread"]  # no signal ends a loop in Rust
    words += ["-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist"]
    limit_s = 60 + 4 * cost_s
    return _failure(
        *call(root, ".venv/bin/python", "-m", "pytest", *words, *files, limit_s=limit_s)
    )


CHOOSE = """
import json, sys
from tests.mutants import BUDGET_S
from tests.tiers import costs, reach
from tests.tiers.depth import FABRICS, Tier
reached = reach.of_checkout().tests_reached([sys.argv[1]])
left_out = (*FABRICS, "tests/system/test_wheel.py")  # it builds for minutes
pure = {file: steps for file, steps in reached.items() if not file.startswith(left_out)}
stored = costs.stored()
deeper = costs.deeper(pure, stored, BUDGET_S / 2, (), 0).chosen
chosen, left_s = [], BUDGET_S
tiers = {file: Tier.DEEP if file in deeper else Tier.GATE for file in pure}
prices = {file: stored[tier].get(file, (costs.UNKNOWN_S, 0.0))[0] for file, tier in tiers.items()}
for file in sorted(pure, key=lambda file: (pure[file], prices[file], file)):
    cost_s = prices[file]
    if cost_s <= left_s:
        left_s -= cost_s
        chosen.append((file, file in deeper, cost_s))
print(json.dumps(chosen))
"""


def judged(root: Path, mutant: Mutant) -> dict[str, object]:
    """Plant a fault, and return it with the test that finds it, or an empty text."""
    path = root / mutant.file
    original = path.read_text()
    end = mutant.offset + len(mutant.old)
    path.write_text(original[: mutant.offset] + mutant.new + original[end:])
    began = time.monotonic()
    try:
        killer = _found_by(root, mutant.file)
    finally:
        path.write_text(original)
    return {**asdict(mutant), "killer": killer, "seconds": round(time.monotonic() - began)}


def _found_by(root: Path, file: str) -> str:
    """Return what finds the fault that is planted in a file: see ``judged``."""
    if file.startswith("core/"):
        crate = file.split("/")[1]
        words = ("tools/rust-tests.sh", "gate", crate)
        status, said = call(root, *words, limit_s=CORE_LIMIT_S)
        if NOT_COMPILED in said:
            return NOT_COMPILED
        if status:
            return _failure(status, said)
        status, said = call(root, "tools/native.sh", "--setup", limit_s=CORE_LIMIT_S)
        if status:
            raise SystemExit(f"tools/native.sh fails: {said[-300:]}")
    _, said = call(root, ".venv/bin/python", "-c", CHOOSE, file)
    chosen = json.loads(said.splitlines()[-1])
    for first in range(0, len(chosen), BATCH):
        files, is_deep, costs_s = zip(*chosen[first : first + BATCH], strict=True)
        deeper = list(itertools.compress(files, is_deep))
        if killer := _killer(root, files, deeper, sum(costs_s)):
            return killer
    return ""


def cloned(name: str) -> Path:
    """Return a clone of the last commit, with the environment and the programs of the checkout."""
    root = REPOSITORY / "build" / name
    if not root.exists():
        call(REPOSITORY, "git", "clone", "--quiet", ".", str(root))
        (root / ".venv").symlink_to(REPOSITORY / ".venv")
    call(root, "git", "fetch", "--quiet", "origin", "HEAD")
    status, said = call(root, "git", "reset", "--quiet", "--hard", "FETCH_HEAD")
    if status != 0:
        raise SystemExit(f"{root} is no clone of this checkout, remove it: {said}")
    shutil.copytree(REPOSITORY / "knotless/_native", root / "knotless/_native", dirs_exist_ok=True)
    shutil.copy2(REPOSITORY / "knotless/_core.abi3.so", root / "knotless/_core.abi3.so")
    return root


def _build_core(root: Path) -> None:
    """Build all once without a fault, and run its tests: with one, only what it changes is built.

    Raises SystemExit if they fail without a fault.
    """
    crates = [folder.split("/")[1] for folder in CORE]
    tests = [("tools/rust-tests.sh", "gate", crate) for crate in crates]
    for words in (("tools/native.sh", "--setup"), *tests):
        status, said = call(root, *words)
        if status != 0:
            raise SystemExit(f"{' '.join(words)} fails without a fault: {said[-300:]}")


def main() -> int:
    """Judge the faults that a seed draws, and list the survivors; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=80)
    parser.add_argument("--core", action="store_true", help="faults of the Rust code")
    asked = parser.parse_args()
    name = "mutants-core" if asked.core else "mutants"
    root = cloned(name)
    if asked.core:
        _build_core(root)
    commit = call(root, "git", "rev-parse", "--short", "HEAD")[1].strip()
    by_file: dict[str, list[Mutant]] = {}
    for mutant in (of_core if asked.core else of_python)(root):
        by_file.setdefault(mutant.file, []).append(mutant)
    rng = random.Random(asked.seed)  # noqa: S311 - repeatable, not secret
    kept = root.with_name(f"{name}-{asked.seed}-{commit}.jsonl")
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    for number in range(asked.count):
        mutant = rng.choice(by_file[rng.choice(sorted(by_file))])
        if number >= len(rows):
            rows.append(judged(root, mutant))
            with kept.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    rows = [row for row in rows if row["killer"] != NOT_COMPILED]
    survivors = [json.dumps(row) for row in rows if not row["killer"]]
    print(*survivors, f"{len(survivors)} of {len(rows)} faults survive", sep="\n")  # noqa: T201
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
