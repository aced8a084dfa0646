"""The two programs that run a controller: our own, and Ryu's manager with the application."""

from __future__ import annotations

import sys
from pathlib import Path

from knotless.base.package import python_module
from tests.support import REPOSITORY

RYU_MANAGER = Path(sys.executable).with_name("ryu-manager")
APPLICATION = str(REPOSITORY / "controller/app.py")


def controller_command(
    openflow: int | None = None,
    rest: int | None = None,
    tls: tuple[object, object, object] | None = None,
    applications: tuple[str, ...] | None = None,
) -> list[str]:
    """Return the command of a controller on these ports, with these files for TLS.

    ``applications`` are files or modules of Ryu, which then runs it; None: it runs alone.
    """
    if applications is None:
        words = python_module("knotless", "controller", "run")
        names = ("--port", "--rest-port", "--tls-key", "--tls-cert", "--tls-ca")
    else:
        words = [str(RYU_MANAGER)]
        port = f"--ofp-{'tcp' if tls is None else 'ssl'}-listen-port"
        names = (port, "--wsapi-port", "--ctl-privkey", "--ctl-cert", "--ca-certs")
    values = (openflow, rest, *(tls or ()))
    given = [
        f"{name}={value}" for name, value in zip(names, values, strict=False) if value is not None
    ]
    return [*words, *given, *(applications or ())]
