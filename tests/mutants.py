"""Plant faults in the modules that decide, and list those that no test finds.

    python -m tests.mutants --seed 1 --count 80
    python -m tests.mutants --seed 1 --count 30 --core

A fault is another operator or constant, a condition that always holds, two arguments swapped, or a
function that returns at once. Each is planted alone, in ``build/mutants``, a clone of the last
commit. The files of tests that reach it run as in the gate, the nearest at full depth, until one
fails, for three minutes at most; after that it is undecided. A line of JSON for each goes to a file
in ``build/`` that the seed and the commit name: what was stopped goes on behind its last line.
"""

from __future__ import annotations

import argparse
import ast
import io
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
LIMIT_S = 180
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


def _call(root: Path, *words: str, limit_s: float | None = LIMIT_S) -> tuple[int, str]:
    """Run a command; one that takes too long ends with its children, such as workers of xdist."""
    with subprocess.Popen(
        words,
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'experiments'}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return UNDECIDED, ""
    return process.returncode, said


def _killer(root: Path, files: Sequence[str], deeper: Sequence[str]) -> str | None:
    """Return the first test that fails; empty if none does, None if that takes too long.

    A worker gets one test after the other: it runs all that it has been given also after -x.
    """
    words = ["-q", "-x", "-n", "2", "--dist=load", "--maxschedchunk=1", "--tier=gate"]
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
chosen = costs.deeper(pure, costs.stored(), 120, (), 0).chosen
print(json.dumps([sorted(pure, key=lambda file: (pure[file], file)), chosen]))
"""


def judged(root: Path, mutant: Mutant) -> dict[str, object]:
    """Plant a fault, and return it with the test that finds it: see ``_killer``."""
    path = root / mutant.file
    original = path.read_text()
    end = mutant.offset + len(mutant.old)
    path.write_text(original[: mutant.offset] + mutant.new + original[end:])
    began = time.monotonic()
    row: dict[str, object] = asdict(mutant)
    try:
        if mutant.file.startswith("core/"):
            status, said = _call(root, "tools/native.sh", "--setup")
            if status == 0:
                status, said = _call(root, "tools/rust-tests.sh", "gate")
            if status != 0:
                lines = [line for line in said.splitlines() if "FAILED" in line]
                return {
                    **row,
                    "killer": None if status == UNDECIDED else (lines or [said])[0][:200],
                }
        _, said = _call(root, ".venv/bin/python", "-c", CHOOSE, mutant.file)
        killer = _killer(root, *json.loads(said.splitlines()[-1]))
        return {**row, "killer": killer, "seconds": round(time.monotonic() - began)}
    finally:
        path.write_text(original)


def cloned() -> Path:
    """Return a clone of the last commit, with the environment and the programs of the checkout."""
    root = REPOSITORY / "build" / "mutants"
    if not root.exists():
        _call(REPOSITORY, "git", "clone", "--quiet", ".", str(root))
        (root / ".venv").symlink_to(REPOSITORY / ".venv")
    _call(root, "git", "fetch", "--quiet", "origin", "HEAD")
    status, said = _call(root, "git", "reset", "--quiet", "--hard", "FETCH_HEAD")
    if status != 0:
        raise SystemExit(f"{root} is no clone of this checkout, remove it: {said}")
    shutil.copytree(REPOSITORY / "knotless/_native", root / "knotless/_native", dirs_exist_ok=True)
    shutil.copy2(REPOSITORY / "knotless/_core.abi3.so", root / "knotless/_core.abi3.so")
    return root


def _build_core(root: Path) -> None:
    """Build all once without a fault, and run its tests: with one, only what it changes is built.

    Raises SystemExit if they fail without a fault.
    """
    for words in (("tools/native.sh", "--setup"), ("tools/rust-tests.sh", "gate")):
        status, said = _call(root, *words, limit_s=None)
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
    root = cloned()
    if asked.core:
        _build_core(root)
    commit = _call(root, "git", "rev-parse", "--short", "HEAD")[1].strip()
    by_file: dict[str, list[Mutant]] = {}
    for mutant in (of_core if asked.core else of_python)(root):
        by_file.setdefault(mutant.file, []).append(mutant)
    rng = random.Random(asked.seed)  # noqa: S311 - repeatable, not secret
    kept = root.with_name(f"mutants-{'core-' * asked.core}{asked.seed}-{commit}.jsonl")
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    for number in range(asked.count):
        mutant = rng.choice(by_file[rng.choice(sorted(by_file))])
        if number >= len(rows):
            rows.append(judged(root, mutant))
            with kept.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    survive = [row for row in rows if row["killer"] == ""]
    undecided = [row for row in rows if row["killer"] is None]
    end = f"{len(survive)} of {len(rows)} faults survive, {len(undecided)} are undecided: no test"
    end += f" has failed, and some take longer than {LIMIT_S} s"
    print(*map(json.dumps, [*survive, *undecided]), end, sep="\n")  # noqa: T201
    return 1 if survive or undecided else 0


if __name__ == "__main__":
    sys.exit(main())
