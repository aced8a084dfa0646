"""The REST interface: reading only, JSON, on the loopback address unless told otherwise."""

from __future__ import annotations

import json
import time
from typing import Any

from ryu.app.wsgi import ControllerBase, Response, route

from controller.state import FabricState
from topologies.formats.files import to_json


class Rest(ControllerBase):
    """Answers from ``data["state"]``, a :class:`controller.state.FabricState`."""

    @property
    def state(self) -> FabricState:
        """What the controller knows."""
        state: FabricState = self.data["state"]
        return state

    @route("status", "/status", methods=["GET"])
    def status(self, _request: Any, **_: Any) -> Any:
        """Return how far each switch is, and everything that is wrong."""
        return _json(self.state.status(time.monotonic()))

    @route("plan", "/plan", methods=["GET"])
    def plan(self, _request: Any, **_: Any) -> Any:
        """Return the plan's summary, as ``knotless plan --json`` prints it."""
        return _json(self.state.summary)

    @route("check", "/check", methods=["GET"])
    def check(self, _request: Any, **_: Any) -> Any:
        """Return the verdict on the rules, as ``knotless check --json`` prints it."""
        return _json(self.state.verdict.as_json())

    @route("fabric", "/fabric", methods=["GET"])
    def fabric(self, _request: Any, **_: Any) -> Any:
        """Return the declared fabric as JSON that ``knotless`` reads."""
        return _json(to_json(self.state.fabric))


def _json(content: object) -> Any:
    return Response(content_type="application/json", body=json.dumps(content).encode() + b"\n")
