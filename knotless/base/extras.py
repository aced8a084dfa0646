"""Packages that not everyone needs, by the extra of ``pyproject.toml`` that brings them."""

from __future__ import annotations

from collections.abc import Mapping

from knotless.base.package import CHECKOUT

EXTRAS: Mapping[str, str] = {
    **dict.fromkeys(("jinja2", "matplotlib", "pyarrow"), "results"),
    **dict.fromkeys(("cryptography", "greenlet", "prometheus_client"), "controller"),
    **dict.fromkeys(("eventlet", "ryu"), "ryu"),
    "scapy": "controller",  # of the package itself, but not of the demo's environment
    **dict.fromkeys(("dask", "distributed"), "sweeps"),
    **dict.fromkeys(("starlette", "textual", "uvicorn"), "web"),
}
"""Module -> extra, of modules that not every command needs."""


def extra_of(error: ModuleNotFoundError) -> str | None:
    """Return the extra that is missing, or None if the module belongs to none."""
    return EXTRAS.get((error.name or "").partition(".")[0])


def how_to_install(error: ModuleNotFoundError) -> str | None:
    """Return one line that says what installs a missing module; None if no extra has it."""
    if (extra := extra_of(error)) is None:
        return None
    how = "tools/make setup" if CHECKOUT else f"pip install 'knotless[{extra}]'"
    return f"{error.name} is not installed: {how}"
