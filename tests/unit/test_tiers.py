"""How tests are chosen: depths and seeds, what a change reaches, costs, kept failures, skips."""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutants import TOO_LONG, Mutant, call, of_python
from tests.support import REPOSITORY
from tests.support.every import holds_for_every
from tests.tiers import advice, costs, kept, parts, reach
from tests.tiers.depth import GATE_CASES, SEEDS_APART, Depth, Tier
from tests.tiers.skips import ALLOWED, is_allowed

pytest_plugins = ["pytester"]
FILE = Path("/a/test_a.py")


@pytest.mark.parametrize("seed", [0, 3])
def test_cases_of_a_smaller_tier_are_among_those_of_a_larger(seed: int) -> None:
    gate, deep, night = (Depth(tier, seed).seeds(FILE, 50) for tier in Tier)
    assert list(gate) == list(deep)[:GATE_CASES]
    assert list(deep) == list(night)
    assert set(deep).isdisjoint(Depth(Tier.DEEP, seed + 1).seeds(FILE, SEEDS_APART))


def test_a_file_that_a_change_reaches_runs_deep_in_the_gate() -> None:
    depth = Depth(Tier.GATE, 0, {FILE})
    assert len(depth.seeds(FILE, 50)) == 50
    assert len(depth.seeds(Path("/a/test_b.py"), 50)) == GATE_CASES
    assert depth.examples(FILE, 0.3) == 30
    assert depth.examples(Path("/a/test_b.py"), 0.3) == 3


def test_listed_cases_of_the_gate_are_drawn_by_the_seed() -> None:
    drawn = [Depth(Tier.GATE, seed).kept(FILE, "t", 100, 5) for seed in (0, 0, 1)]
    assert [len(each) for each in drawn] == [5, 5, 5]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(Depth(Tier.DEEP, 0).kept(FILE, "t", 100, 5)) == 100
    assert len(Depth(Tier.GATE, 0).kept(FILE, "t", 3, 5)) == 3


# --- what a change reaches ------------------------------------------------------------------


@pytest.fixture(scope="module")
def graph() -> reach.Graph:
    return reach.of_checkout()


@pytest.mark.parametrize(
    ("changed", "nearest"),
    [
        ("knotless/topologies/families/torus.py", "tests/unit/topologies/test_topologies.py"),
        ("knotless/importers/sonic/database.py", "tests/unit/importers/test_bgp.py"),
        ("knotless/controller/updates/state.py", "tests/property/test_switches.py"),
        ("knotless/emulation/supervisor.py", "tests/integration/test_up_down.py"),
        (
            f"{reach.EXPERIMENTS}/commands/run.py",
            "experiments/tests/integration/test_run_deadlock.py",
        ),
        (
            f"{reach.EXPERIMENTS}/studies/deadlock/matrix.py",
            "experiments/tests/integration/test_run_deadlock.py",
        ),
        ("core/graph/src/lib.rs", "tests/unit/routing/test_turns.py"),
        ("core/emulator/src/daemon.rs", "tests/integration/test_emulator.py"),
        ("core/python/src/schedule.rs", "tests/unit/traffic/test_schedule.py"),
        ("tests/support/lone_controller.py", "tests/integration/test_reload.py"),
        ("tests/data/page_commands.yaml", "tests/system/test_page_commands.py"),
    ],
)
def test_a_change_reaches_what_tests_it(changed: str, nearest: str, graph: reach.Graph) -> None:
    steps = graph.tests_reached([changed])
    assert nearest in steps, sorted(steps)[:5]
    assert steps[nearest] < 6


def test_every_module_and_crate_is_reached_by_a_test(graph: reach.Graph) -> None:
    files = reach.tracked()
    ours = [
        file
        for file in files
        if file.startswith(("knotless/", f"{reach.EXPERIMENTS}/"))
        and file.endswith(".py")
        and "/_" not in file
    ]
    crates = [file for file in files if file.startswith("core/") and file.endswith("/lib.rs")]
    ours += [file for file in crates if "/fuzz/" not in file and "/test-tier/" not in file]
    assert len(ours) > 300

    def is_reached(file: str) -> None:
        assert graph.tests_reached([file])

    holds_for_every(is_reached, ours)


def test_a_test_is_reached_by_itself_at_once(graph: reach.Graph) -> None:
    assert graph.tests_reached(["tests/unit/test_tiers.py"]) == {"tests/unit/test_tiers.py": 0}


# --- costs ------------------------------------------------------------------------------------

STORED: dict[Tier, costs.Costs] = {
    Tier.GATE: {"a": (1.0, 1.0), "b": (1.0, 1.0), "f": (0.0, 1.0), "g": (0.0, 1.0)},
    Tier.DEEP: {"a": (31.0, 9.0), "b": (61.0, 9.0), "f": (9.0, 21.0), "g": (9.0, 21.0)},
    Tier.NIGHT: {},
}


def test_the_nearest_files_run_deeper_until_the_time_is_used() -> None:
    reached = {"b": 1, "a": 2, "new": 2}
    assert costs.deeper(reached, STORED, 95, (), 0) == costs.Choice(("b", "new"), ("a",))
    assert costs.deeper(reached, STORED, 100, (), 0).chosen == ("b", "new", "a")
    assert costs.deeper(reached, STORED, 5, (), 0).left == ("b", "new", "a")


def test_only_so_many_fabrics_run_deeper() -> None:
    reached = {"f": 1, "g": 1, "a": 3}
    assert costs.deeper(reached, STORED, 1000, {"f", "g"}, 1).left == ("g",)
    assert costs.deeper(reached, STORED, 50, {"f", "g"}, 9) == costs.Choice(("f", "g"), ("a",))


def test_costs_are_stored_and_growth_is_seen_beside_the_other_files(tmp_path: Path) -> None:
    before = {"a": (10.0, 5.0), "b": (20.0, 5.0), "c": (30.0, 5.0), "small": (0.1, 0.1)}
    file = tmp_path / "costs.json"
    costs.store(Tier.GATE, before, file)
    costs.store(Tier.DEEP, {"a": (99.0, 1.0)}, file)
    assert costs.stored(file)[Tier.GATE] == before
    now = {"a": (20.0, 5.0), "b": (80.0, 5.0), "c": (60.0, 5.0), "small": (0.9, 0.1)}
    lines = costs.table(now, costs.stored(file)[Tier.GATE])
    assert [line.split()[-1] for line in lines[2:]] == ["b", "c", "a", "small"]
    assert "GREW" in lines[2], "the machine is half as fast, and b four times as dear"
    assert not any("GREW" in line for line in lines[3:])


def test_the_page_has_the_stored_costs_of_files_that_exist() -> None:
    text = advice.PAGE.read_text(encoding="utf-8")
    assert advice.written(text) == text, "run python -m tests.tiers.advice"
    for path in (path for paths in advice.ADVICE.values() for path in paths):
        assert (REPOSITORY / path).exists(), path


def test_the_longest_files_begin_first() -> None:
    assert costs.longest_first(["a", "f", "new"], STORED, Tier.DEEP) == ["f", "new", "a"]


# --- kept failures and skips -----------------------------------------------------------------


def test_what_fails_is_kept_until_it_passes_with_the_same_seed(tmp_path: Path) -> None:
    case = kept.Case("tests/a.py::test_a[1]", Tier.DEEP, 7)
    kept.keep(case, tmp_path)
    kept.keep(kept.Case(case.test, Tier.GATE, 8), tmp_path)
    assert kept.cases(tmp_path) == [case], "the first failure stays"
    kept.forget(kept.Case(case.test, Tier.DEEP, 8), tmp_path)
    assert kept.cases(tmp_path) == [case]
    kept.forget(case, tmp_path)
    assert kept.cases(tmp_path) == []


def test_a_skip_without_a_row_is_a_failure(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_one="import pytest\ndef test_a():\n    pytest.skip('no such reason')\n"
        "def test_b():\n    pass\n"
        "@pytest.mark.xfail\ndef test_c():\n    assert False\n"
    )
    ran = pytester.runpytest_inprocess("-p", "tests.tiers.plugin", "--rootdir", str(pytester.path))
    ran.assert_outcomes(passed=1, failed=1, xfailed=1)
    ran.stdout.fnmatch_lines(["*no such reason: no row of tests/tiers/skips.py allows this skip*"])


def test_skipped_tests_are_counted_by_reason(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = "needs root: put sudo before the command"
    folder = pytester.mkdir("tests")
    (folder / "test_one.py").write_text(
        f"import pytest\n@pytest.mark.parametrize('a', range(3))\ndef test_a(a):\n"
        f"    pytest.skip({reason!r})\ndef test_b():\n    pass\n"
    )

    def call(command: Sequence[str], _env: object, _quiet: bool) -> int:
        words = [word for word in command if word.startswith("--report=")]
        pytester.runpytest_inprocess("-p", "tests.tiers.plugin", *words, str(folder))
        return 0

    monkeypatch.setattr(parts, "_call", call)
    run = parts.Run(Tier.GATE)
    run.tests((), only=["tests/unit/test_one.py"])
    assert run.summary() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["1 passed, 0 failed, 3 skipped", f"       3  skipped: {reason}"]


def test_rows_of_skips_say_where_the_test_runs() -> None:
    assert all("tests/" in place and where for place, _reason, where in ALLOWED)
    assert is_allowed("tests/integration/test_a.py::test_b", "Skipped: needs root")
    assert not is_allowed("tests/unit/test_a.py::test_b", "Skipped: no such reason")


@pytest.mark.parametrize(
    ("options", "passed"),
    [((), 40 + 4 + 2), (("--tier", "gate"), 10 + 2 + 1)],
)
def test_markers_give_each_tier_its_cases(
    pytester: pytest.Pytester, options: tuple[str, ...], passed: int
) -> None:
    pytester.makepyfile(
        test_one="""
        import pytest
        from hypothesis import given, strategies as st
        seen = []
        @pytest.mark.seeds(40)
        def test_seeds(seed):
            pass
        @pytest.mark.thin(2)
        @pytest.mark.parametrize("a", range(4))
        def test_thin(a):
            pass
        @pytest.mark.deep
        def test_deep():
            pass
        @pytest.mark.examples(0.5)
        @given(st.integers())
        def test_given(n):
            seen.append(n)
            assert len(seen) <= 50
        """
    )
    report = pytester.path / "report.json"
    words = ("--tier", *options[1:]) if options else ()
    ran = pytester.runpytest_inprocess(
        *("-p", "tests.tiers.plugin", "--report", str(report), "--rootdir", str(pytester.path)),
        *words,
    )
    ran.assert_outcomes(passed=passed, deselected=3 if options else 0)
    done = costs.read(report)
    assert (list(done.costs), done.passed, done.failed) == (["test_one.py"], passed, 0)


@pytest.fixture(scope="module")
def faults() -> list[Mutant]:
    return list(of_python(REPOSITORY))


@pytest.mark.seeds(40, gate=10)
def test_planted_faults_are_programs(seed: int, faults: list[Mutant]) -> None:
    assert len({fault.file for fault in faults}) > 100
    fault = random.Random(seed).choice(faults)  # noqa: S311 - repeatable, not secret
    text = (REPOSITORY / fault.file).read_text()
    end = fault.offset + len(fault.old)
    assert text[fault.offset : end] == fault.old
    changed = text[: fault.offset] + fault.new + text[end:]
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))


# --- the parts of a tier -----------------------------------------------------------------------


class Commands:
    """Stands for the commands that a tier calls; those with a word of ``failing`` fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failing: dict[str, int]) -> None:
        self.called: list[list[str]] = []
        self._failing = failing
        monkeypatch.setattr(parts, "_call", self._call)
        monkeypatch.setattr(parts, "_root_prefix", lambda: ["as-root"])

    def _call(self, command: Sequence[str], _env: object, _quiet: bool) -> int:
        self.called.append(list(command))
        return next((s for word, s in self._failing.items() if word in command), 0)


def test_a_failed_part_ends_no_other_and_is_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = Commands(monkeypatch, {".venv/bin/mypy": 1})
    run = parts.Run(Tier.GATE)
    run.checks()
    run.core()
    chosen = ("tests/unit/test_tiers.py", "experiments/tests/alone/test_messages_in_time.py")
    run.tests(chosen)
    assert run.summary() == 1
    assert "types and clippy  FAILED" in capsys.readouterr().out
    pure, fabrics, alone = commands.called[-3:]
    assert f"--deeper={','.join(chosen)}" in pure
    assert "--ignore=tests/integration/" in pure
    assert "as-root" not in pure
    assert fabrics[0] == alone[0] == "as-root"
    assert "tests/integration/" in fabrics
    assert "experiments/tests/alone/" not in fabrics
    assert alone[-1] == "experiments/tests/alone/test_messages_in_time.py"
    assert not any(word.startswith("-n") for word in alone)


def test_where_nothing_fails_the_exit_status_is_0(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, {})
    run = parts.Run(Tier.GATE)
    run.tests(())
    assert run.summary() == 0
    assert len(commands.called) == 2, "none of those that run alone is for the gate"


def test_only_the_files_that_a_change_reaches_run(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, {})
    only = ("tests/unit/a.py", "tests/integration/b.py")
    parts.Run(Tier.GATE).tests(only, only=only)
    pure, fabrics = commands.called
    assert (pure[-1], fabrics[-1]) == only


def test_a_kept_test_that_is_gone_is_forgotten(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = kept.Case("tests/unit/a.py::test_gone", Tier.DEEP, 3)
    failing = kept.Case("tests/integration/b.py::test_b", Tier.GATE, 3)
    for case in (gone, failing):
        kept.keep(case, tmp_path)
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    monkeypatch.setattr(kept.cases, "__defaults__", (tmp_path,))
    monkeypatch.setattr(kept.forget, "__defaults__", (tmp_path,))
    commands = Commands(monkeypatch, {gone.test: parts.NO_SUCH_TEST, failing.test: 1})
    run = parts.Run(Tier.GATE)
    run.kept()
    assert kept.cases() == [failing]
    assert [part.failed for part in run.parts] == [True, False]
    assert "as-root" in commands.called[0]
    assert "--tier=deep" in commands.called[1]


def test_a_command_that_a_signal_has_ended_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    Commands(monkeypatch, {"cargo": -9})
    run = parts.Run(Tier.GATE)
    run.checks()
    assert [part.failed for part in run.parts] == [True, True]


def test_no_tests_at_all_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    Commands(monkeypatch, {"--dist=worksteal": parts.NOTHING_COLLECTED})
    run = parts.Run(Tier.DEEP)
    run.tests(())
    assert run.summary() == 1


def test_a_fault_that_waits_for_ever_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutants.IDLE_S", 0.5)
    code = "import threading; threading.Event().wait()"
    said = call(REPOSITORY, sys.executable, "-c", code, limit_s=600.0)
    assert said == (TOO_LONG, "it waits for ever")


@pytest.mark.parametrize("loop", ["while True: pass", "import os\nos.fork()\nwhile True: pass"])
def test_a_fault_that_loops_for_ever_ends_after_its_processor_time(loop: str) -> None:
    assert call(REPOSITORY, sys.executable, "-c", loop, limit_s=0.2)[0] == TOO_LONG
    assert call(REPOSITORY, sys.executable, "-c", "print(2)", limit_s=60.0) == (0, "2\n")
