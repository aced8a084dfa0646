"""The flow control of verdicts, as an option."""

from __future__ import annotations

from typing import Any

import click

from knotless.base.flow_control import AUTO, CHOICES
from knotless.cli import complete

FLOW_CONTROL = "Links that pause (802.3x): none, host links, between switches, or all; or PFC"


def one_of(choices: tuple[str, ...]) -> dict[str, Any]:
    """Return how one of ``choices`` is shown and completed."""
    return {"metavar": "|".join(choices), "shell_complete": complete.choices(choices)}


flow_control_option = click.option(
    "--flow-control",
    default=AUTO,
    show_default=True,
    **one_of(CHOICES),
    help=f"{FLOW_CONTROL} on all. auto: what the fabric uses with --live; else pfc if frames wait"
    " in several priorities between switches, else pause.",
)
