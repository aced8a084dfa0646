"""A verdict as the page shows it, with the same sentence as every command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from knotless.base.complaints import complaint
from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FlowControl, verdict_text


class _Checked(BaseModel):
    """The values of ``knotless check --json`` of which the sentence consists."""

    flow_control: FlowControl
    cycle: list[str] = []
    missing: list[str] = []
    assumed_routes: bool = False


def shown_verdict(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page shows of the values of ``knotless check --json``.

    ``text`` is the sentence. Raises KnotlessError if they are not those of a verdict.
    """
    try:
        checked = _Checked.model_validate(values)
    except ValidationError as error:
        raise KnotlessError(f"this is no verdict: {complaint(error)}") from error
    text = verdict_text(
        checked.flow_control,
        checked.cycle,
        checked.missing,
        assumed_routes=checked.assumed_routes,
    )
    return {"text": text, "cycle": checked.cycle, "witnesses": values.get("witnesses")}
