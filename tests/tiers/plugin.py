"""The plug-in of pytest: depth, seeds, allowed skips, and the processor time of each file.

Markers:

``seeds(count, name="seed", gate=10)``
    The argument ``name`` of the test is the number of a case; ``gate`` of ``count`` are for the
    gate. They follow from ``tests/SEED``.
``examples(factor)``
    A property of Hypothesis has this multiple of the examples of the tier.
``thin(gate)``
    Of the parameters that the test lists, ``gate`` are drawn for the gate.
``smoke``
    A test in a folder of :data:`tests.tiers.depth.FABRICS` that is for the gate.
``deep``
    A test elsewhere that is not.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.support import REPOSITORY
from tests.tiers import costs, kept
from tests.tiers.depth import FABRICS, GATE_CASES, Depth, Tier, stored_seed
from tests.tiers.skips import is_allowed

_DEPTH = pytest.StashKey[Depth]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options with which :mod:`tests.tiers.parts` calls pytest."""
    group = parser.getgroup("tiers", "how much the tests do")
    group.addoption("--tier", choices=[*Tier], default=Tier.DEEP, help="the depth of all files")
    group.addoption("--deeper", default="", help="files that run deep in the gate, with commas")
    group.addoption("--report", default="", help="write what each file costs to this file")
    group.addoption("--longest-first", action="store_true", help="files in order of stored times")
    group.addoption("--keep", action="store_true", help="keep each test that fails in tests/kept")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Fix depth and seeds before tests are collected."""
    option = config.option
    if not hasattr(option, "tiers_seed"):  # workers are told that of the process that began
        option.tiers_seed = stored_seed()
    files = [file for file in option.deeper.split(",") if file]
    config.stash[_DEPTH] = Depth(
        Tier(option.tier), option.tiers_seed, frozenset(REPOSITORY / file for file in files)
    )
    config.pluginmanager.register(_Recorder(config), "tiers-recorder")
    option.hypothesis_seed = str(option.tiers_seed)
    if getattr(option, "randomly_seed", None) == "default":
        option.randomly_seed = option.tiers_seed


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Number the cases of a test that is marked ``seeds``."""
    for marker in metafunc.definition.iter_markers("seeds"):
        (count,), more = marker.args, dict(marker.kwargs)
        name = more.pop("name", "seed")
        path = metafunc.definition.path
        metafunc.parametrize(name, metafunc.config.stash[_DEPTH].seeds(path, count, **more))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this tier does not run, and give properties their numbers of examples."""
    depth, expression = config.stash[_DEPTH], config.option.markexpr
    left_out = {item for item in items if not _runs(item, depth, expression)}
    by_test: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item not in left_out and item.get_closest_marker("thin"):
            by_test[item.nodeid.partition("[")[0]].append(item)
    for test, cases in by_test.items():
        marker = cases[0].get_closest_marker("thin")
        assert marker is not None
        cases.sort(key=lambda item: item.nodeid)
        kept = depth.kept(cases[0].path, test, len(cases), *(marker.args or (GATE_CASES,)))
        left_out.update(case for number, case in enumerate(cases) if number not in kept)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
    _give_examples(items, depth)
    if config.option.longest_first:
        files = {str(item.path.relative_to(REPOSITORY)) for item in items}
        order = costs.longest_first(files, costs.stored(), depth.tier)
        items.sort(key=lambda item: order.index(str(item.path.relative_to(REPOSITORY))))


def _runs(item: pytest.Item, depth: Depth, expression: str) -> bool:
    is_asked = depth.tier is Tier.NIGHT or "long" in expression
    if item.get_closest_marker("long") and not is_asked:
        return False
    if depth.of(item.path) is not Tier.GATE:
        return True
    if item.nodeid.startswith(FABRICS):
        return item.get_closest_marker("smoke") is not None
    return item.get_closest_marker("deep") is None


def _give_examples(items: Iterable[pytest.Item], depth: Depth) -> None:
    given = set[object]()
    for item in items:
        function = getattr(item, "obj", None)
        if getattr(function, "is_hypothesis_test", False):
            function = getattr(function, "__func__", function)
            if function not in given:
                given.add(function)
                marker = item.get_closest_marker("examples")
                factor = marker.args[0] if marker else 1.0
                settings(max_examples=depth.examples(item.path, factor))(function)


# --- skips -------------------------------------------------------------------------------------


def _reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport, where: str) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = _reason_of(report)
    if not is_allowed(where, reason):
        report.outcome = "failed"
        report.longrepr = f"{where}: {reason}: no row of tests/tiers/skips.py allows this skip"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test that is skipped for a reason that nobody has allowed."""
    report = yield
    _refuse_skip(report, item.nodeid)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Fail a file that is skipped for a reason that nobody has allowed."""
    report = yield
    _refuse_skip(report, collector.nodeid)
    return report


# --- costs and failures ------------------------------------------------------------------------


def _processor_s() -> float:
    """Return the processor time of this process and of its children that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


class _Recorder:
    """What each file costs: seconds of a processor, and of a clock; and what became of tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._costs: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._passed, self._failed, self._skipped = 0, set[str](), Counter[str]()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Count one test for its file, with the fixtures that it is the first or last to use."""
        before = _processor_s(), time.monotonic()
        try:
            return (yield)
        finally:
            row = self._costs[item.nodeid.partition("::")[0]]
            row[0] += _processor_s() - before[0]
            row[1] += time.monotonic() - before[1]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test; keep one that has failed, and forget one that passes again."""
        self._passed += report.when == "call" and report.passed
        if report.failed:
            self._failed.add(report.nodeid)
        if report.skipped and not hasattr(report, "wasxfail"):
            self._skipped[_reason_of(report).removeprefix("Skipped: ")] += 1
        if not self._config.option.keep or hasattr(self._config, "workerinput"):
            return
        depth = self._config.stash[_DEPTH]
        path = REPOSITORY / report.nodeid.partition("::")[0]
        case = kept.Case(report.nodeid, depth.of(path), depth.seed)
        if report.failed:
            kept.keep(case)
        elif report.when == "call" and report.passed:
            kept.forget(case)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker has counted."""
        for file, spent in getattr(node, "workeroutput", {}).get("costs", {}).items():
            for place, seconds in enumerate(spent):
                self._costs[file][place] += seconds

    def pytest_sessionfinish(self) -> None:
        """Hand on or write what was counted."""
        costs = {file: [round(s, 3) for s in row] for file, row in sorted(self._costs.items())}
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["costs"] = costs
        elif self._config.option.report:
            done = {"costs": costs, "passed": self._passed, "failed": len(self._failed)}
            done["skipped"] = self._skipped
            Path(self._config.option.report).write_text(json.dumps(done), encoding="utf-8")
