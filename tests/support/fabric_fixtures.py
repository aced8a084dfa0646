"""What the folders of tests with fabrics share; their ``conftest.py`` import it.

Fixtures: a fabric name for each test, a running fabric of that name, the ``knotless`` command, and
what a fabric has left on the machine. Where no fabric can run, their tests are skipped with what is
missing.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from knotless.emulation import processes, runtime, state
from knotless.emulation.names import Names, names_of
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.priority import Priority, default_priority
from knotless.emulation.requirements import why_not
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from tests.support.terminal import Lab
from tests.support.waiting import HANG_S

__all__ = [
    "knotless",
    "lab",
    "names",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "remains",
    "running",
    "start",
]
"""What a folder's conftest.py imports: fixtures and hooks."""

_COUNT = itertools.count()

SHOWN_LINES = 60
"""The lines of each log of a fabric that are shown when its test has failed."""

Knotless = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., EmulatedFabric]
ANY_PLAN = PlanRequest()
Remains = Callable[[Names], list[str]]
FREE_PORTS = ("--port", "0", "--rest-port", "0")
"""Options with which fabrics of several tests never use the same port."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Show what the programs of the fabric of a failed test have said, while it still exists."""
    report = yield
    arguments = getattr(item, "funcargs", {})
    names = arguments.get("names") or getattr(arguments.get("fabric"), "names", None)
    if report.failed and names is not None:
        for file in sorted(names.directory.glob("*.log")):
            lines = file.read_text(errors="replace").splitlines()[-SHOWN_LINES:]
            report.sections.append((f"{file.name}, at its end", "\n".join(lines)))
    return report


@cache
def _why_no_fabrics() -> str | None:
    return why_not()


def new_names() -> Names:
    """Return names that no other test has."""
    return names_of(f"test-{os.getpid()}-{next(_COUNT)}")


def new_fabric(
    names: Names, spec: str, request: PlanRequest = ANY_PLAN, **settings: Any
) -> EmulatedFabric:
    """Return a fabric on free ports, which is not started yet."""
    common: dict[str, Any] = {"openflow_port": 0, "rest_port": 0, "static_arp": True}
    return EmulatedFabric(load(spec), request, name=names.name, **(common | settings))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests where no fabric can run; have those marked ``realtime`` go before other programs.

    Virtual time goes on while programs compute, and while they wait for a processor.
    """
    if reason := _why_no_fabrics():
        pytest.skip(reason)
    is_measured = item.get_closest_marker("realtime") is not None
    default_priority.set(Priority.REALTIME if is_measured else Priority.NORMAL)


@pytest.fixture
def names() -> Iterator[Names]:
    """Return the names of a fabric for this test only; it is removed afterwards."""
    own = new_names()
    yield own
    if left := state.read(own):
        if left.owner.pid in processes.family():  # a failed test has left it in this process
            runtime.sweep(own, left)
        else:
            runtime.remove(own)


@pytest.fixture
def start(names: Names) -> Iterator[Start]:
    """Return a function that starts the fabric of a spec on free ports; it ends with the test."""
    with ExitStack() as running:

        def begin(spec: str, request: PlanRequest = ANY_PLAN, **settings: Any) -> EmulatedFabric:
            return running.enter_context(new_fabric(names, spec, request, **settings))

        yield begin


@pytest.fixture(scope="module", params=[1, 3], ids=["one Open vSwitch", "three"])
def running(request: pytest.FixtureRequest) -> Iterator[EmulatedFabric]:
    """Return a fabric that the tests of one file share."""
    with new_fabric(new_names(), "ring,4", switch_processes=request.param) as fabric:
        yield fabric


@pytest.fixture
def knotless() -> Knotless:
    """Return a function that runs the command ``knotless`` and waits for its end."""

    def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).with_name("knotless")), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
            **options,
        )

    return run


@pytest.fixture
def remains() -> Callable[[Names], list[str]]:
    """Return a function that lists everything of a fabric that exists on this machine."""

    def look(names: Names) -> list[str]:
        lines = [f"namespace {space}" for space in state.existing_namespaces(names)]
        if names.directory.exists():
            lines.append(f"directory {names.directory}")
        if names.clock_page.exists():
            lines.append(f"clock page {names.clock_page}")
        lines += [f"process {process.pid}" for process in processes.marked(names.name)]
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8")
        lines += [line for line in mounts.splitlines() if names.name in line]
        return lines

    return look


@pytest.fixture
def lab(names: Names) -> Iterator[Callable[..., Lab]]:
    """Return a function that opens a lab under this test's name."""
    opened: list[Lab] = []

    def start(*words: str, directory: Path | None = None) -> Lab:
        opened.append(Lab(*words, "--name", names.name, *FREE_PORTS, directory=directory))
        return opened[-1]

    yield start
    for one in opened:
        one.close()
