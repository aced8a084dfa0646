"""The HTTP interface of a running fabric's controller."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from knotless.base.errors import EmulationError
from knotless.base.files import read_text
from knotless.emulation import certificates, state
from knotless.emulation.names import Names

ADDRESS = certificates.ADDRESS
REST_PORT = 8080
REQUEST_LIMIT_S = 10.0
MAX_ANSWER_BYTES = 256 << 20
CHANGE_LIMIT_S = 600.0
"""Time for the steps of a change to be planned and proven, on a large fabric."""


class BusyError(EmulationError):
    """The controller refuses a change for now: another goes on, or it is not the active one."""


Address = tuple[str, int]
"""Host and port of a controller's REST interface."""


@dataclass(frozen=True)
class Ports:
    """The TCP ports on which one controller of a fabric listens, on :data:`ADDRESS`."""

    openflow: int
    rest: int

    @property
    def openflow_address(self) -> Address:
        """Host and port for switches."""
        return (ADDRESS, self.openflow)


def ports_of(settings: Mapping[str, Any]) -> list[Ports]:
    """Return where all controllers of a fabric with these settings listen."""
    if more := settings.get("controller_ports"):
        return [Ports(*pair) for pair in more]
    return [Ports(int(settings.get("openflow_port", 0)), int(settings.get("rest_port", REST_PORT)))]


class Controller:
    """The controller of a running fabric; of several, the active one.

    Raises :class:`EmulationError` if the fabric does not run, or has no controller of ours.
    """

    def __init__(self, names: Names) -> None:
        settings = state.require_running(names).settings
        if settings.get("controller") == "none":
            raise EmulationError(f"fabric {names.name!r} was started without a controller")
        self._names, self._all = names, ports_of(settings)

    @property
    def address(self) -> Address:
        """Host and port of the active controller."""
        if len(self._all) == 1:
            return (ADDRESS, self._all[0].rest)
        return active_of(self._all)[0]

    def status(self) -> dict[str, Any]:
        """Return ``GET /status``; raises :class:`EmulationError`."""
        return status_of(self._all)

    def post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Request a change; raises :class:`EmulationError` with the reason if it is refused.

        :class:`BusyError`: it may be accepted later.
        """
        token = read_text(self._names.token_file, EmulationError).strip()
        return post(self.address, path, body, token)


def status(rest_port: int) -> dict[str, Any]:
    """Return the controller's ``GET /status``; raises :class:`EmulationError` if unreachable."""
    return exchange((ADDRESS, rest_port), "GET", "/status")


def status_of(controllers: Sequence[Ports]) -> dict[str, Any]:
    """Return the status of :func:`active_of`."""
    return active_of(controllers)[1]


def active_of(controllers: Sequence[Ports]) -> tuple[Address, dict[str, Any]]:
    """Return address and status of the active controller, else of the first that answers.

    Raises :class:`EmulationError` if none answers.
    """
    answers: list[tuple[Address, dict[str, Any]]] = []
    for ports in controllers:
        try:
            answers.append(((ADDRESS, ports.rest), status(ports.rest)))
        except EmulationError:
            continue
        if is_active(answers[-1][1]):
            return answers[-1]
    if not answers:
        where = " or ".join(str(ports.rest) for ports in controllers)
        raise EmulationError(f"the controller does not answer on port {where}")
    return answers[0]


def is_active(status: Mapping[str, Any]) -> bool:
    """Tell whether a controller with this status leads, or is the only one."""
    role = status.get("role")
    return not role or role["state"] == "active"


def post(address: Address, path: str, body: Mapping[str, object], token: str) -> dict[str, Any]:
    """Request a change; raises :class:`EmulationError` with the reason if it is refused."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return exchange(address, "POST", path, json.dumps(body), headers, CHANGE_LIMIT_S)


def exchange(
    address: Address,
    method: str,
    path: str,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
    limit_s: float = REQUEST_LIMIT_S,
) -> dict[str, Any]:
    """Return a controller's answer; raises :class:`EmulationError` for another one or none.

    :class:`BusyError`: the request may be accepted later.
    """
    connection = http.client.HTTPConnection(*address, timeout=limit_s)
    try:
        connection.request(method, path, body, dict(headers or {}))
        with connection.getresponse() as answer:
            reply = json.loads(answer.read(MAX_ANSWER_BYTES))
    except (OSError, http.client.HTTPException, ValueError) as error:
        where = f"port {address[1]}" if address[0] == ADDRESS else f"{address[0]}:{address[1]}"
        raise EmulationError(f"the controller does not answer on {where}") from error
    finally:
        connection.close()
    if not isinstance(reply, dict):
        raise EmulationError(f"the controller's answer to {method} {path} is no JSON object")
    if answer.status != http.HTTPStatus.OK:
        reason = reply.get("error", f"it answers {answer.status} to {method} {path}")
        is_busy = answer.status == http.HTTPStatus.CONFLICT
        raise (BusyError if is_busy else EmulationError)(f"the controller: {reason}")
    return reply
