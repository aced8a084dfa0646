"""Questions to the link emulator of a fabric of ours, without blocking other green threads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eventlet.green import socket

_TIMEOUT_S = 2.0
_ANSWER_LIMIT_BYTES = 1 << 24


class EmulatorError(Exception):
    """The emulator does not answer."""


def ask(path: Path, what: str) -> dict[str, Any]:
    """Return the answer to a request without arguments, such as ``status``.

    ``path`` is the control socket (docs/emulator-protocol.md). Raises EmulatorError.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(str(path))
            connection.sendall(json.dumps({"do": what}).encode() + b"\n")
            with connection.makefile("rb") as reader:
                answer = json.loads(reader.readline(_ANSWER_LIMIT_BYTES))
    except (OSError, ValueError) as error:
        raise EmulatorError(f"{path}: {error}") from error
    if not isinstance(answer, dict):
        raise EmulatorError(f"{path}: no answer")
    return answer


def left_port(channel: Mapping[str, Any]) -> int:
    """Return how many frames have left a port; those that a cut link lost have left it too."""
    return int(channel["tx_frames"]) + int(channel["drops"]["down"])


def paused_us(channel: Mapping[str, Any]) -> int:
    """Return how long a channel was paused so far, in all its priorities."""
    return sum(int(of["paused_us"]) for of in channel["priorities"])
