"""The options of ``knotless check`` about failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from knotless.cli import complete

Command = TypeVar("Command", bound=Callable[..., Any])
REACTIONS = ("bgp", "bgp-valley-free", "static", "local", "engine")


@dataclass(frozen=True)
class FailureOptions:
    """The failures to try, sets of at most ``max_failed``; routing's reaction (None: default)."""

    max_failed: int
    react: str | None
    engine: str
    seed: int
    samples: int
    remedies: bool
    export: str | None


def failure_options(command: Command) -> Command:
    """Add the options of failures to a command."""
    for option in reversed(
        [
            click.option(
                "--failures",
                type=int,
                default=0,
                metavar="K",
                help="Also try every failure of a link or switch (1), or every two of them (2).",
            ),
            click.option(
                "--react",
                type=click.Choice(REACTIONS),
                help="How routing reacts to a failure. Default: bgp for routers, else static.",
            ),
            click.option(
                "--engine",
                default="auto",
                show_default=True,
                shell_complete=complete.engines,
                help="The engine of --react engine.",
            ),
            click.option("--seed", default=1, show_default=True, help="Seed of samples."),
            click.option(
                "--samples",
                default=20_000,
                show_default=True,
                help="Pairs of failures to try; of more, this many are drawn.",
            ),
            click.option("--remedies", is_flag=True, help="Propose changes, each proven safe."),
            click.option(
                "--export",
                metavar="DIR",
                help="Write the remedies as files for SONiC, FRR, OpenSM or Open vSwitch.",
            ),
        ]
    ):
        command = option(command)
    return command
