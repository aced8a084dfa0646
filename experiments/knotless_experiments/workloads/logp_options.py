"""The options that give simulated processors LogP's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from knotless.base.quantities import MICROSECONDS, SHARE
from knotless.cli.numbers import Number
from knotless_experiments.messages.logp import PAPER_001, LogP


def overhead_options() -> list[click.Option]:
    """Return options for the costs of sending and receiving on simulated processors."""
    return [
        _time("--send", PAPER_001.send_us, "o_s"),
        _time("--receive", PAPER_001.receive_us, "o_r"),
    ]


def logp_options() -> list[click.Option]:
    """Return these and options for messages that follow each other or arrive together."""
    share = click.Option(
        ["--interrupt"],
        type=Number(0, 1, unit=SHARE),
        default=PAPER_001.interrupt_us / PAPER_001.receive_us,
        show_default="0.35",
        help="Simulation: part of o_r that messages that arrive together cost only once.",
    )
    return [*overhead_options(), _time("--gap", PAPER_001.gap_us, "g"), share]


def costs_of(options: Mapping[str, Any]) -> LogP:
    """Return the costs given by the options. L and the line's time are measured."""
    receive_us = options["receive"]
    return LogP(
        send_us=options["send"],
        latency_us=0.0,
        receive_us=receive_us,
        gap_us=options.get("gap", 0.0),
        interrupt_us=receive_us * options.get("interrupt", 0.0),
    )


def _time(option: str, default_us: float, what: str) -> click.Option:
    return click.Option(
        [option],
        type=Number(0, 1e6, unit=MICROSECONDS),
        default=default_us,
        show_default=True,
        help=f"Simulation: LogP's {what}.",
    )
