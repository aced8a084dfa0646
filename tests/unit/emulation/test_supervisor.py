"""A fabric that is taken down while it starts: whoever started it is told what happened."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from knotless.base.errors import EmulationError
from knotless.emulation import supervisor
from knotless.routing.plan import make_plan
from knotless.topologies import load

PROGRAM = """
import os, signal, sys
from knotless.emulation import supervisor

class Slow:
    def __init__(self, fabric, request, progress, **options):
        self.progress = progress
    def __enter__(self):
        self.progress(str(os.getpid()))
        while True:
            signal.pause()
    def __exit__(self, *error):
        return None

supervisor.EmulatedFabric = Slow
sys.exit(supervisor._main())
"""
"""The supervisor, with a fabric that never becomes ready and whose only step is its process."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_up_says_that_the_fabric_was_taken_down(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``knotless down`` sends TERM and HUP, and at last KILL."""
    words = [sys.executable, "-c", PROGRAM]
    monkeypatch.setattr(supervisor, "python_module", lambda _name: words)

    def down(process: str) -> None:
        os.kill(int(process), number)

    with pytest.raises(EmulationError) as raised:
        supervisor.start(make_plan(load("ring,3"), "updown"), {}, down)
    assert str(raised.value).startswith("the fabric was taken down while it started (knotless down")
    assert number.name in str(raised.value)


def test_another_end_names_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [sys.executable, "-c", "raise SystemExit(7)"]
    monkeypatch.setattr(supervisor, "python_module", lambda _name: words)
    with pytest.raises((EmulationError, BrokenPipeError)) as raised:
        supervisor.start(make_plan(load("ring,3"), "updown"), {}, print)
    assert isinstance(raised.value, BrokenPipeError) or "status 7" in str(raised.value)
