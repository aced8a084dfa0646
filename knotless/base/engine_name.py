"""The value of ``engine`` that selects the default routing engine of a fabric's family.

:mod:`knotless.routing.default_engine` selects it.
"""

from __future__ import annotations

from typing import Literal

from knotless.base.deprecated_values import DeprecatedValues

AUTO_ENGINE: Literal["auto"] = "auto"
_DEPRECATED = DeprecatedValues("engine", {"native": AUTO_ENGINE})
normalised = _DEPRECATED.normalised
accepted = _DEPRECATED.accepted
