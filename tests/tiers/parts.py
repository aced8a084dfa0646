"""The parts of a tier: each a command, with its minutes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import REPOSITORY
from tests.tiers import costs, kept
from tests.tiers.depth import FABRICS, ROOTS, Tier

ALONE = "experiments/tests/alone/"
"""The one whose tests others would disturb."""
MAX_WORKERS = 4
NO_SUCH_TEST, NOTHING_COLLECTED = 4, 5
"""Exit statuses of pytest."""
_MANIFEST = ("--manifest-path", "core/Cargo.toml")
_PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider")


@dataclass
class Part:
    """A part that has run."""

    name: str
    minutes: float
    failed: bool


@dataclass
class Run:
    """One run of a tier."""

    tier: Tier
    store: bool = False
    parts: list[Part] = field(default_factory=list)
    spent: dict[str, tuple[float, float]] = field(default_factory=dict)
    deeper: Collection[str] = ()
    passed: int = 0
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def workers(self) -> int:
        """Processes for tests: more fabrics than processors would starve each other."""
        return min(os.cpu_count() or 1, MAX_WORKERS)

    # --- one command -----------------------------------------------------------------------

    def _part(
        self,
        name: str,
        *commands: Sequence[str],
        env: Mapping[str, str] | None = None,
        also_well: int = 0,
    ) -> list[int]:
        """Run commands side by side, and return their exit statuses: 0 and ``also_well`` are well.

        Of several, the output is printed when each has ended.
        """
        print(f"--- {name}")
        began = time.monotonic()
        with ThreadPoolExecutor(len(commands)) as pool:
            done = [pool.submit(_call, each, env, len(commands) > 1) for each in commands]
        statuses = [each.result() for each in done]
        failed = not {0, also_well}.issuperset(statuses)
        self.parts.append(Part(name, (time.monotonic() - began) / 60, failed))
        return statuses

    def _pytest(
        self, name: str, *words: str, prefix: Sequence[str] = (), also_well: int = 0
    ) -> None:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "costs.json"
            tier = [f"--tier={self.tier}", "--keep", f"--report={report}"]
            self._part(name, [*prefix, *_PYTEST, *tier, *words], also_well=also_well)
            done = costs.read(report)
            self.spent.update(done.costs)
            self.passed += done.passed
            self.failed += done.failed
            self.skipped.update(done.skipped)

    # --- the parts -------------------------------------------------------------------------

    def kept(self) -> None:
        """Run what has failed before, each with the tier and the seed of then."""
        for case in kept.cases():
            prefix = _root_prefix() if case.test.startswith(FABRICS) else []
            words = [f"--tier={case.tier}", "--keep", case.test]
            name = f"kept: {case.test}, tier {case.tier}, seed {case.seed}"
            command, env = [*prefix, *_PYTEST, *words], {"SEED": str(case.seed)}
            (status,) = self._part(name, command, env=env)
            if status in (NO_SUCH_TEST, NOTHING_COLLECTED):
                print("there is no such test any more: it is not kept")
                self.parts[-1].failed = False
                kept.forget(case)

    def checks(self) -> None:
        """Check format, lint and types; mypy and clippy side by side."""
        ruff = ".venv/bin/ruff"
        self._part(
            "format and lint",
            [ruff, "check", "."],
            [ruff, "format", "--check", "."],
            ["cargo", "fmt", *_MANIFEST, "--all", "--check"],
        )
        clippy = ["cargo", "--locked", "clippy", *_MANIFEST, "--quiet", "--profile", "gate"]
        self._part(
            "types and clippy",
            [".venv/bin/mypy"],
            [*clippy, "--workspace", "--all-targets", "--", "-D", "warnings"],
        )

    def core(self) -> None:
        """Test the Rust workspace, if it differs from what passed last."""
        self._part("core", ["tools/rust-tests.sh", self.tier])

    def tests(self, deeper: Collection[str], only: Collection[str] | None = None) -> None:
        """Run the tests: without fabrics, with fabrics, and those that run alone."""
        self.deeper = deeper
        paths = _roots() if only is None else sorted(only)
        more = [f"--deeper={','.join(deeper)}"] if deeper else []
        # Of the files that a change reaches, all tests may be for nights.
        may_be_empty = 0 if only is None else NOTHING_COLLECTED
        pure = _within(paths, inside=False)
        if pure:
            ignored = [f"--ignore={folder}" for folder in FABRICS]
            spread = ["-n", str(self.workers), "--dist=worksteal"]
            words = [*spread, *ignored, *more, *pure]
            self._pytest("tests without fabrics", *words, also_well=may_be_empty)
        prefix = _root_prefix()
        fabrics = [path for path in _within(paths, inside=True) if not path.startswith(ALONE)]
        alone = [path for path in _within(paths, inside=True) if path.startswith(ALONE)]
        if self.tier is Tier.GATE:  # none of them is for the gate
            alone = [path for path in deeper if path.startswith(ALONE)]
        if fabrics:
            # A file stays with one worker: its tests share a fabric. A worker that dies ends the
            # run and names its test: xdist would hand its files on, and then wait for ever.
            spread = ["-n", str(self.workers), "--dist=loadfile", "--no-loadscope-reorder"]
            spread += ["--max-worker-restart=0", "--longest-first"]
            words = [*spread, *more, *fabrics]
            self._pytest("tests with fabrics", *words, prefix=prefix, also_well=may_be_empty)
        if alone:
            self._pytest(
                "tests that run alone", *more, *alone, prefix=prefix, also_well=may_be_empty
            )

    def night(self) -> None:
        """Run what only nights have time for: see the Makefile for each."""
        for target in ("seeds HOURS=2", "docs", "fuzz", "fuzz-commands", "fuzz-readers", "prove"):
            self._part(target, ["make", "--silent", *target.split()])

    # --- at the end ------------------------------------------------------------------------

    def summary(self) -> int:
        """Print minutes and costs; return the exit status."""
        stored = costs.stored()
        before = {**stored[self.tier], **{f: stored[Tier.DEEP].get(f, (0, 0)) for f in self.deeper}}
        print("\n".join(costs.table(self.spent, before)))
        if self.store:
            shallow = {file: row for file, row in self.spent.items() if file not in self.deeper}
            costs.store(self.tier, {**stored[self.tier], **shallow})
        print(f"{self.tier}: {sum(part.minutes for part in self.parts):.1f} minutes")
        for part in self.parts:
            print(f"{part.minutes:8.1f}  {part.name}{'  FAILED' if part.failed else ''}")
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped.total()} skipped")
        for reason, count in self.skipped.most_common():
            print(f"{count:8}  skipped: {reason}")
        return int(any(part.failed for part in self.parts))


def _call(command: Sequence[str], env: Mapping[str, str] | None, quiet: bool) -> int:
    """Run a command from the top of the checkout; with ``quiet`` its output is printed at its end.

    It writes no byte code: root runs tests too, and its user could not remove what it leaves.
    """
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        text=True,
        check=False,
    )
    if quiet and done.stdout:
        print(done.stdout, end="")
    return done.returncode


def _roots() -> list[str]:
    """Return the folders of tests that are there."""
    return [folder for folder in ROOTS if (REPOSITORY / folder).is_dir()]


def _within(paths: Iterable[str], *, inside: bool) -> list[str]:
    """Return which paths are in folders with fabrics, or not; the roots are all such folders."""
    listed = list(paths)
    if listed == _roots():
        existing = [folder for folder in FABRICS if (REPOSITORY / folder).is_dir()]
        return existing if inside else listed
    return [path for path in listed if path.startswith(FABRICS) is inside]


def _root_prefix() -> list[str]:
    """Return what makes a command one of root; nothing, so that tests are skipped, if none can."""
    if os.geteuid() == 0:
        return []
    asked = subprocess.run(
        ["sudo", "-n", "true"], capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    kept_variables = "--preserve-env=PYTHONDONTWRITEBYTECODE,CI,SEED"
    return ["sudo", "-n", kept_variables] if asked.returncode == 0 else []
