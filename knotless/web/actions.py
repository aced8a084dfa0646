"""Actions of the page on a running fabric: each calls what the command of its name calls.

Every function takes the fields of a request, and raises KnotlessError with one line if they are
wrong or the action is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from knotless.base.errors import EmulationError
from knotless.emulation import captures, demonstration, running_traffic
from knotless.emulation.cuts import Cables
from knotless.emulation.names import Names
from knotless.emulation.rest import Controller
from knotless.web.app import Action

NUMBER = (int, float)
CAPTURE_S, MOST_CAPTURE_S = 10.0, 60.0


def actions_of(names: Names) -> Mapping[str, Action]:
    """Return the actions on the fabric with these names, by name."""

    def cut(fields: Mapping[str, Any]) -> dict[str, Any]:
        given = checked(fields, link=str, silent=bool)
        cables = Cables.of_running(names)
        cable = cables.one(given["link"])
        cables.cut(cable, silent=given.get("silent", False))
        return {"link": cable.name, "up": False}

    def mend(fields: Mapping[str, Any]) -> dict[str, Any]:
        given = checked(fields, link=str)
        cables = Cables.of_running(names)
        cable = cables.one(given["link"])
        cables.mend(cable)
        return {"link": cable.name, "up": True}

    def start_traffic(fields: Mapping[str, Any]) -> dict[str, Any]:
        given = checked(fields, pattern=str, rate_mbps=NUMBER, seed=int)
        return {"traffic": running_traffic.start(names, **given).as_json()}

    def stop_traffic(fields: Mapping[str, Any]) -> dict[str, Any]:
        checked(fields)
        traffic = running_traffic.stop(names)
        return {"stopped": None if traffic is None else traffic.as_json()}

    def freeze(fields: Mapping[str, Any]) -> dict[str, Any]:
        checked(fields)
        deadlock = demonstration.freeze(names)
        return {"since_us": deadlock.since_us, "cycle": list(deadlock.cycle)}

    def release(fields: Mapping[str, Any]) -> dict[str, Any]:
        checked(fields)
        return {"released": demonstration.release(names)}

    def capture(fields: Mapping[str, Any]) -> dict[str, Any]:
        given = checked(fields, link=str, duration_s=NUMBER)
        duration_s = given.get("duration_s", CAPTURE_S)
        if not 0 < duration_s <= MOST_CAPTURE_S:
            raise EmulationError(f"'duration_s' must be from 0 to {MOST_CAPTURE_S:g}")
        if not capturing.acquire(blocking=False):
            raise EmulationError("a capture is under way: there is one at a time")
        try:
            result = captures.capture_in_our_directory(names, given["link"], duration_s)
        finally:
            capturing.release()
        return {"captured": result.link, "file": str(result.file), "frames": result.frames}

    def request(path: str) -> Action:
        return lambda fields: Controller(names).post(path, fields)

    capturing = Lock()
    changes = {path: request(f"/{path}") for path in ("drain", "undrain", "change")}
    demo = {"traffic-start": start_traffic, "traffic-stop": stop_traffic}
    demo |= {"freeze": freeze, "release": release, "capture": capture}
    return {"cut": cut, "mend": mend, **changes, **demo}


def checked(fields: Mapping[str, Any], **kinds: type | tuple[type, ...]) -> Mapping[str, Any]:
    """Return ``fields``, which may be those of ``kinds`` with their types; the first must be there.

    Raises :class:`EmulationError` for others.
    """
    for first in kinds:
        if first not in fields:
            raise EmulationError(f"{first!r} is missing")
        break
    for name, value in fields.items():
        if name not in kinds:
            allowed = f"; there is {', '.join(kinds)}" if kinds else ""
            raise EmulationError(f"{name[:40]!r} is unknown here{allowed}")
        # True and False are numbers in Python.
        kind = kinds[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            wanted = "a number" if isinstance(kind, tuple) else kind.__name__
            raise EmulationError(f"{name!r} must be {wanted}")
    return fields
