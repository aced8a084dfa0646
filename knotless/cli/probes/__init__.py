"""Probes: tests of a running fabric with crafted frames, captured on its links.

Each probe is one module with a function that takes a :class:`knotless.cli.probes._target.Target`
and yields :class:`Finding`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from knotless.base.plugins import module_names

if TYPE_CHECKING:
    from knotless.cli.probes._target import Target


@dataclass(frozen=True)
class Finding:
    """A finding of a probe: ``subject`` is what was tested, ``text`` the result."""

    probe: str
    subject: str
    ok: bool
    text: str


Probe = Callable[["Target"], Iterator[Finding]]


def names() -> list[str]:
    """Return the names of the probes, in alphabetical order."""
    return module_names("knotless.cli.probes")


def named(name: str) -> Probe:
    """Return a probe; it is imported on use, because Scapy is slow to import."""
    probe: Probe = import_module(f"knotless.cli.probes.{name}").probe
    return probe
