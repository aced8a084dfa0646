"""Traffic patterns, one module each; :func:`pattern_named` finds them.

To add a pattern, add a module to this package that defines a :class:`Pattern`.
"""

from __future__ import annotations

from knotless.traffic.patterns.pattern import Flows, Pattern, PatternError, pattern_named, patterns

__all__ = ["Flows", "Pattern", "PatternError", "pattern_named", "patterns"]
