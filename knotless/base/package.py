"""Paths of this package and of what was built into it; commands that start its modules.

In a checkout, ``tools/native.sh`` copies the Rust programs and libraries into the package; the data
that a wheel has copies of is read from where it is edited.
"""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
NATIVE = PACKAGE / "_native"
"""Programs and libraries that are not Python."""
CHECKOUT = PACKAGE.parent if (PACKAGE.parent / "core" / "Cargo.toml").is_file() else None
"""The folder of the checkout; None in a wheel."""
WORKING_DIRECTORY = Path("/")
"""The folder of long-running processes, so that they keep no folder of the user's busy."""


def native(name: str) -> Path:
    """Return the path of a program or library that was built from ``core/`` or ``proofs/``."""
    return NATIVE / name


def data(name: str) -> Path:
    """Return the folder ``labs`` or ``experiments``: of the checkout, else the wheel's copy."""
    return (CHECKOUT or PACKAGE / "_data") / name


def python_module(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of this package, whatever folder it is started in."""
    return [sys.executable, "-P", "-m", module, *arguments]


def version() -> str:
    """Return the version of this package, as ``pyproject.toml`` states it."""
    from importlib import metadata  # loads the parser of e-mails

    return metadata.version("knotless")


def profile() -> str | None:
    """Return the profile of Cargo by which the Rust programs were built; None if unknown.

    It is ``release`` in a wheel and after ``make bench``, and ``setup`` in another checkout.
    """
    file = NATIVE / "profile"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else None


def commit() -> str | None:
    """Return the commit of the checkout, or of which the wheel was built; None if unknown."""
    if CHECKOUT is None:
        file = NATIVE / "commit"
        return file.read_text(encoding="utf-8").strip() if file.is_file() else None
    import subprocess

    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            cwd=CHECKOUT,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
