"""Simulated fabrics: the emulator's switch model under a virtual clock.

:class:`Scenario` describes a simulation, :func:`simulate` runs it. The simulation itself is in Rust
(``core/simulator``); this package converts fabrics, plans and patterns to its arrays, and its
counters to metrics.
"""

from __future__ import annotations

from knotless.base.errors import SimulationError
from knotless.simulation.result import Result
from knotless.simulation.run import simulate
from knotless.simulation.scenario import Scenario
from knotless.simulation.settings import Buffers, HostPause, LinkChange, PauseLimit
from knotless.simulation.traffic import Load

__all__ = [
    "Buffers",
    "HostPause",
    "LinkChange",
    "Load",
    "PauseLimit",
    "Result",
    "Scenario",
    "SimulationError",
    "simulate",
]
