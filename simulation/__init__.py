"""Simulated fabrics: the emulator's switch model under a virtual clock.

:class:`Scenario` describes a simulation, :func:`simulate` runs it. The simulation itself is in Rust
(``core/simulator``); this package converts fabrics, plans and patterns to its arrays, and its
counters to figures.
"""

from __future__ import annotations

from common.errors import SimulationError
from simulation.channels import Buffers
from simulation.result import Result
from simulation.run import simulate
from simulation.scenario import LinkChange, Scenario
from simulation.traffic import Load

__all__ = [
    "Buffers",
    "LinkChange",
    "Load",
    "Result",
    "Scenario",
    "SimulationError",
    "simulate",
]
