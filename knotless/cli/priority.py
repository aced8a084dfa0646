"""``--priority`` of everything that starts fabrics."""

from __future__ import annotations

from typing import Any

import click

from knotless.emulation.priority import Priority, default_priority

_NAME = "--priority"
_SETTINGS: dict[str, Any] = {
    "type": click.Choice([str(each) for each in Priority], case_sensitive=False),
    "default": str(Priority.NORMAL),
    "show_default": True,
    "help": "Emulation: normal shares the machine with other programs; realtime goes before all of"
    " them, to measure how long repairs take.",
}
PRIORITY = click.Option([_NAME], **_SETTINGS)
priority_option = click.option(_NAME, **_SETTINGS)
"""Adds it to a command, which passes it on."""


def _set_default(context: click.Context, _parameter: click.Parameter, value: str) -> None:
    token = default_priority.set(Priority(value))
    context.call_on_close(lambda: default_priority.reset(token))


default_priority_option = click.option(
    _NAME, **_SETTINGS, expose_value=False, callback=_set_default
)
"""Adds it to a command, all of whose fabrics have it."""
