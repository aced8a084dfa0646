"""The options that look for traffic that freezes what is planned or checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from knotless.base.errors import KnotlessError
from knotless.base.files import write_whole

if TYPE_CHECKING:
    from knotless.base.flow_control import FlowControl
    from knotless.base.switch_settings import SwitchFile
    from knotless.forwarding.state import ForwardingState
    from knotless.simulation.freezing import Freeze


def freeze_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--freeze`` and ``--write-trace``."""
    for option in (
        click.option(
            "--write-trace",
            metavar="F.csv",
            help="Write the traffic to this file, for traffic start --trace, or simulate --turns"
            " --trace.",
        ),
        click.option(
            "--freeze",
            "freezing",
            is_flag=True,
            help="Look for traffic that freezes it, in simulation: a cycle alone does not.",
        ),
    ):
        function = option(function)
    return function


def refuse_trace_alone(write_trace: str | None, *, freezing: bool) -> None:
    """Raise KnotlessError if there is no traffic to be written."""
    if write_trace is not None and not freezing:
        raise KnotlessError("--write-trace writes the traffic that --freeze finds: give both")


def freeze_of(
    state: ForwardingState,
    flow_control: FlowControl,
    switches: SwitchFile | None,
    write_trace: str | None,
    hash_seed: int = 0,
) -> Freeze:
    """Look for traffic that freezes a state, and write it to a file, if one is named."""
    from knotless.simulation.freezing import find_freeze  # loads the simulator

    found = find_freeze(state, flow_control, switches=switches, hash_seed=hash_seed)
    if write_trace is not None and found.freezes:
        write_whole(write_trace, found.trace)
    return found
