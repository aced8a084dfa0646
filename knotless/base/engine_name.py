"""The value of ``engine`` that selects the default routing engine of a fabric's family.

:mod:`knotless.routing.engine` selects it.
"""

from __future__ import annotations

from typing import Literal

AUTO_ENGINE: Literal["auto"] = "auto"
