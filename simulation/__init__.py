"""Simulated fabrics: the emulator's switch model under a virtual clock.

:class:`Scenario` says what is simulated, :func:`simulate` does it. The work is done in Rust
(``core/simulator``); what is here turns fabrics, plans and patterns into its arrays, and
what it counted into figures.
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
