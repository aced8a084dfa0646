"""Paths of the certificates of a fabric that speaks TLS: a CA of its own, one for each side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ADDRESS = "127.0.0.1"
"""The address on which the controller listens; switches find it in its certificate."""


@dataclass(frozen=True)
class Pair:
    """Paths of a private key and its certificate, in PEM."""

    key: Path
    certificate: Path


@dataclass(frozen=True)
class Certificates:
    """Paths of all certificates: the CA's, and a pair for the controller and for the switches."""

    authority: Path
    controller: Pair
    switches: Pair


def paths(directory: Path) -> Certificates:
    """Return where the certificates of a fabric are."""

    def pair(name: str) -> Pair:
        return Pair(directory / f"{name}-key.pem", directory / f"{name}-cert.pem")

    return Certificates(directory / "ca.pem", pair("controller"), pair("switches"))
