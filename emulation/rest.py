"""The HTTP interface of a running fabric's controller."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any

from common.errors import EmulationError
from common.files import read_text
from emulation import certificates, state
from emulation.names import Names

ADDRESS = certificates.ADDRESS
REQUEST_LIMIT_S = 10.0
MAX_ANSWER_BYTES = 256 << 20
CHANGE_LIMIT_S = 600.0
"""Time for the steps of a change to be planned and proven, on a large fabric."""

Address = tuple[str, int]
"""Host and port of a controller's REST interface."""


class Controller:
    """The controller of a running fabric.

    Raises :class:`EmulationError` if the fabric does not run, or has no controller of ours.
    """

    def __init__(self, names: Names) -> None:
        settings = state.require_running(names).settings
        if settings.get("controller") == "none":
            raise EmulationError(f"fabric {names.name!r} was started without a controller")
        self._names, self.at = names, (ADDRESS, int(settings["rest_port"]))

    def status(self) -> dict[str, Any]:
        """Return ``GET /status``; raises :class:`EmulationError`."""
        return exchange(self.at, "GET", "/status")

    def post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Request a change; raises :class:`EmulationError` with the reason if it is refused."""
        token = read_text(self._names.token_file, EmulationError).strip()
        return post(self.at, path, body, token)


def status(rest_port: int) -> dict[str, Any]:
    """Return the controller's ``GET /status``; raises :class:`EmulationError` if unreachable."""
    return exchange((ADDRESS, rest_port), "GET", "/status")


def post(at: Address, path: str, body: Mapping[str, object], token: str) -> dict[str, Any]:
    """Request a change; raises :class:`EmulationError` with the reason if it is refused."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return exchange(at, "POST", path, json.dumps(body), headers, CHANGE_LIMIT_S)


def exchange(
    at: Address,
    method: str,
    path: str,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
    limit_s: float = REQUEST_LIMIT_S,
) -> dict[str, Any]:
    """Return a controller's answer; raises :class:`EmulationError` for another one or none."""
    connection = http.client.HTTPConnection(*at, timeout=limit_s)
    try:
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        found = json.loads(answer.read(MAX_ANSWER_BYTES))
    except (OSError, http.client.HTTPException, ValueError) as error:
        where = f"port {at[1]}" if at[0] == ADDRESS else f"{at[0]}:{at[1]}"
        raise EmulationError(f"the controller does not answer on {where}") from error
    finally:
        connection.close()
    if not isinstance(found, dict):
        raise EmulationError(f"the controller's answer to {method} {path} is no JSON object")
    if answer.status != http.HTTPStatus.OK:
        said = found.get("error", f"it answers {answer.status} to {method} {path}")
        raise EmulationError(f"the controller: {said}")
    return found
