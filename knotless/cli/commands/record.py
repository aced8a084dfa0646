"""``knotless record``: record what all channels of a running fabric do."""

from __future__ import annotations

import click

from knotless.base.counting import counted
from knotless.base.quantities import SECONDS
from knotless.cli.answer import Answer, Figure, Headline, Hint, print_answer
from knotless.cli.commands._observed import observed
from knotless.cli.numbers import Number
from knotless.cli.options import duration_option, json_option, observed_name_option, print_json
from knotless.cli.progress import Bar
from knotless.emulation import state
from knotless.emulation.daemon import Daemon
from knotless.emulation.record import record
from knotless.results import recording
from knotless.results.recording import SUFFIX

EXAMPLE = f"""\b
Example: sudo knotless record run{SUFFIX} --duration 30
         knotless replay run{SUFFIX}
"""


@click.command("record", epilog=EXAMPLE)
@click.argument("out", metavar=f"F{SUFFIX}")
@duration_option(60.0)
@click.option(
    "--every",
    "every_s",
    type=Number(min=0.01, max=3600, unit=SECONDS),
    default=0.25,
    show_default=True,
    help="Real time between two frames.",
)
@observed_name_option
@json_option
def command(out: str, duration_s: float, every_s: float, name: str | None, as_json: bool) -> None:
    """Write the load, pauses, buffers and drops of all channels over time, for knotless replay."""
    names = observed(name)
    fabric = state.require_emulated(names)
    daemon = Daemon(names.emulator_socket, fabric.switch_index)
    with Bar("recording", duration_s, counted=False, transient=True) as bar:
        result = record(
            daemon, fabric, duration_s, every_s, lambda passed_s: bar.update(completed=passed_s)
        )
    recording.write(out, result)
    if as_json:
        print_json({"file": out, "frames": len(result.frames)})
    else:
        every = Figure("", 1e6 * every_s, "us").text
        headline = Headline(
            out, counted(len(result.frames), "views"), f"of all channels, every {every}"
        )
        print_answer(Answer(headline, hints=[Hint("look at it", ["knotless", "replay", out])]))
