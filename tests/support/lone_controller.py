"""A controller without switches, for tests that speak to it over loopback themselves."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil

from knotless.base.ports import free_port
from tests.support.controller_programs import controller_command
from tests.support.waiting import HANG_S, until


@dataclass
class LoneController:
    """A running controller; it listens on ports of its own."""

    process: subprocess.Popen[bytes]
    openflow: int
    rest: int
    directory: Path

    @property
    def config(self) -> Path:
        return self.directory / "lab.yaml"

    def log(self) -> str:
        return (self.directory / "log").read_text()

    def get(self, path: str, timeout_s: float = 30) -> Any:
        with urlopen(f"http://127.0.0.1:{self.rest}{path}", timeout=timeout_s) as answer:
            return json.load(answer)

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.get("/status")
        return status

    def installed(self) -> list[str]:
        switches = self.status()["switches"].items()
        return [name for name, switch in switches if switch["installed"]]

    def token(self) -> str:
        """The token that permits changes."""
        return (self.directory / "token").read_text().strip()

    def rss_bytes(self) -> int:
        rss: int = psutil.Process(self.process.pid).memory_info().rss
        return rss


@contextmanager
def lone_controller(
    directory: Path,
    config: str,
    *,
    token: bool = False,
    tls: tuple[Path, Path, Path] | None = None,
    applications: tuple[str, ...] | None = None,
) -> Iterator[LoneController]:
    """Run a controller with this configuration (YAML, without ``rest``) and files for TLS.

    ``applications`` are those of Ryu, which then runs it. With ``token`` it has a file of a token,
    and can be changed over HTTP.
    """
    openflow, rest = free_port(), free_port()
    file = directory / "lab.yaml"
    token_file = ", token_file: token" if token else ""
    file.write_text(f"{config}\nrest: {{port: {rest}{token_file}}}\n")
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            controller_command(openflow, tls=tls, applications=applications),
            cwd=directory,
            env={**os.environ, "KNOTLESS_CONFIG": str(file)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    controller = LoneController(process, openflow, rest, directory)

    def answers() -> bool:
        assert process.poll() is None, controller.log()
        with contextlib.suppress(OSError):
            return bool(controller.status())
        return False

    try:
        until("the controller answers", answers)
        yield controller
    finally:
        process.terminate()
        process.wait(timeout=HANG_S)
