"""The list of benchmarks names every one, and pages name only those that there are."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.__main__ import BENCHMARKS, main
from bench.instructions import instructions_inside
from tests.support import REPOSITORY
from tests.support.every import holds_for_every

SHARED = {"__init__", "__main__", "pages"}
"""Files of the folder that measure nothing."""
PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
NAMED = re.compile(r"make bench NAME=(\w+)|-m bench[. ](\w+)")


def test_every_file_is_in_the_list_and_has_a_command() -> None:
    files = {path.stem: path.read_text() for path in (REPOSITORY / "bench").glob("*.py")}
    assert sorted(files.keys() - SHARED) == sorted(BENCHMARKS) == list(BENCHMARKS)
    for name, one in BENCHMARKS.items():
        assert re.search(r'^if __name__ == "__main__":$', files[name], re.MULTILINE)
        assert ("require_fabrics()" in files[name]) == one.needs_root, name


def named_benchmarks_exist(page: Path) -> None:
    named = {a or b for a, b in NAMED.findall(page.read_text())}
    assert named <= {*BENCHMARKS, "pages", "support", "NAME"}


def test_pages_name_benchmarks_that_there_are() -> None:
    holds_for_every(named_benchmarks_exist, PAGES)


def test_a_benchmark_runs_with_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def run_module(module: str, **_: object) -> None:
        ran.append((module, sys.argv[1:]))

    monkeypatch.setattr(runpy, "run_module", run_module)
    monkeypatch.setattr(sys, "argv", ["bench"])
    assert CliRunner().invoke(main, ["repair", "--cuts", "5", "--help"]).exit_code == 0
    assert ran == [("bench.repair", ["--cuts", "5", "--help"])]


def test_without_a_benchmark_they_are_listed() -> None:
    lines = CliRunner().invoke(main, []).output.splitlines()
    assert [line.split()[0] for line in lines[: len(BENCHMARKS)]] == list(BENCHMARKS)
    done = CliRunner().invoke(main, ["nothing"])
    assert (done.exit_code, "no benchmark 'nothing'; there are capacity, " in done.output) == (
        2,
        True,
    )
    needs = [CliRunner().invoke(main, ["--needs-root", name]).exit_code for name in BENCHMARKS]
    assert needs == [not one.needs_root for one in BENCHMARKS.values()]
    assert CliRunner().invoke(main, ["--needs-root"]).exit_code == 1


PROFILE = """\
events: Ir
ob=(1) /x/_core.abi3.so
fn=(1) run
0 7
+2 3
cob=(2) /x/libc.so.6
cfn=(2) memcpy
calls=1 0
0 90

ob=(2)
fn=(2)
0 90
cob=(1)
cfn=(1)
calls=4 0
0 10

ob=(1)
fn=(3) report
* 1
totals: 101
"""


def test_only_the_own_instructions_of_the_extension_count() -> None:
    assert instructions_inside(PROFILE.splitlines()) == 11
