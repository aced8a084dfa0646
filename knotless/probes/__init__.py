"""Probes: crafted frames on a running fabric, captures of its links, and what these show.

Each probe is one module with a function that takes a :class:`knotless.probes._target.Target`
and yields :class:`Finding`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from common.plugins import module_names

if TYPE_CHECKING:
    from knotless.probes._target import Target


@dataclass(frozen=True)
class Finding:
    """What a probe found: ``subject`` is what it looked at, ``text`` what it saw."""

    probe: str
    subject: str
    ok: bool
    text: str


Probe = Callable[["Target"], Iterator[Finding]]


def names() -> list[str]:
    """Return the names of the probes, in alphabetical order."""
    return module_names("knotless.probes")


def named(name: str) -> Probe:
    """Return a probe; it is imported only now, for Scapy takes its time."""
    found: Probe = import_module(f"knotless.probes.{name}").probe
    return found
