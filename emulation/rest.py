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
CHANGE_LIMIT_S = 600.0
"""Time for the steps of a change to be planned and proven, on a large fabric."""


class Controller:
    """The controller of a running fabric.

    Raises :class:`EmulationError` if the fabric does not run, or has no controller of ours.
    """

    def __init__(self, names: Names) -> None:
        settings = state.require_running(names).settings
        if settings.get("controller") == "none":
            raise EmulationError(f"fabric {names.name!r} was started without a controller")
        self._names, self.port = names, int(settings["rest_port"])

    def status(self) -> dict[str, Any]:
        """Return ``GET /status``; raises :class:`EmulationError`."""
        return status(self.port)

    def post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Request a change; raises :class:`EmulationError` with the reason if it is refused."""
        token = read_text(self._names.token_file, EmulationError).strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        return _exchange(self.port, "POST", path, json.dumps(body), headers, CHANGE_LIMIT_S)


def status(rest_port: int) -> dict[str, Any]:
    """Return the controller's ``GET /status``; raises :class:`EmulationError` if unreachable."""
    return _exchange(rest_port, "GET", "/status", None, {}, REQUEST_LIMIT_S)


def _exchange(
    port: int, method: str, path: str, body: str | None, headers: Mapping[str, str], limit_s: float
) -> dict[str, Any]:
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=limit_s)
    try:
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        found = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise EmulationError(f"the controller does not answer on port {port}") from error
    finally:
        connection.close()
    if not isinstance(found, dict):
        raise EmulationError(f"the controller's answer to {method} {path} is no JSON object")
    if answer.status != http.HTTPStatus.OK:
        said = found.get("error", f"it answers {answer.status} to {method} {path}")
        raise EmulationError(f"the controller: {said}")
    return found
