"""What the page may do to a running fabric: each action calls what the command of its name calls.

Every function takes the fields of a request, and raises KnotlessError with one line if they are
wrong or the action is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.errors import EmulationError
from emulation.cuts import Cables
from emulation.names import Names
from emulation.rest import Controller
from web.app import Action


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

    def request(path: str) -> Action:
        return lambda fields: Controller(names).post(path, fields)

    changes = {path: request(f"/{path}") for path in ("drain", "undrain", "change")}
    return {"cut": cut, "mend": mend, **changes}


def checked(fields: Mapping[str, Any], **kinds: type) -> Mapping[str, Any]:
    """Return ``fields``, which may be those of ``kinds`` with their types; the first must be there.

    Raises :class:`EmulationError` for others.
    """
    first = next(iter(kinds))
    if first not in fields:
        raise EmulationError(f"{first!r} is missing")
    for name, value in fields.items():
        if name not in kinds:
            raise EmulationError(f"{name[:40]!r} is unknown here; there is {', '.join(kinds)}")
        if not isinstance(value, kinds[name]):
            raise EmulationError(f"{name!r} must be {kinds[name].__name__}")
    return fields
