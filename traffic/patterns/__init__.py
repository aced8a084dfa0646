"""Traffic patterns: who sends to whom. One file for each; :func:`pattern_named` finds them.

A new pattern is one new module of this package that holds a :class:`Pattern`.
"""

from __future__ import annotations

from traffic.patterns.pattern import Flows, Pattern, PatternError, pattern_named, patterns

__all__ = ["Flows", "Pattern", "PatternError", "pattern_named", "patterns"]
