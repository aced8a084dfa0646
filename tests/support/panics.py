"""The exception that a panic of the core raises in Python."""

from __future__ import annotations

from knotless._core import forwarding


def _panic_exception() -> type[Exception]:
    """Return the class, which PyO3 does not export."""
    assert forwarding
    kinds = [kind for kind in RuntimeError.__subclasses__() if kind.__module__ == "pyo3_runtime"]
    (panic,) = kinds
    return panic


PanicException = _panic_exception()
PANIC = "index out of bounds: the len is 512\nbut the index is 512"
