"""The engines whose plans can be compiled to rules."""

from __future__ import annotations

from knotless.routing.engine import engines

RULE_ENGINES = [name for name, engine in engines().items() if not engine.is_adaptive]
