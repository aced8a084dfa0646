"""The options that give simulated processors LogP's parameters."""

from __future__ import annotations

import click


def overhead_option(option: str, default_us: float, what: str) -> click.Option:
    """Return an option for one of LogP's parameters of simulated processors."""
    return click.Option(
        [option],
        type=click.FloatRange(0, 1e6),
        default=default_us,
        show_default=True,
        metavar="US",
        help=f"Simulation: LogP's {what}.",
    )
