"""``knotless exec``: run a program on a host of a running fabric."""

from __future__ import annotations

import os
import signal
import sys

import click

from knotless.cli import complete
from knotless.cli.commands._observed import observed
from knotless.cli.options import observed_name_option
from knotless.emulation.running_fabric import RunningFabric

EXAMPLE = """\b
Example: knotless exec h1 ping -c 3 h3
         knotless exec --name my-fabric h1 iperf3 -s -1
"""


@click.command(
    "exec",
    epilog=EXAMPLE,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@observed_name_option
@click.argument("host", shell_complete=complete.hosts)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="PROGRAM...")
def command(name: str | None, host: str, words: tuple[str, ...]) -> None:
    """Run PROGRAM on HOST of a running fabric, as at its prompt.

    Input, output and exit status are the program's. It ends with the fabric. In its arguments,
    names of hosts stand for their addresses.
    """
    replace_by(RunningFabric(observed(name)), host, words)


def replace_by(running: RunningFabric, host: str, words: tuple[str, ...]) -> None:
    """Become a program on a host, as nice to others as all of the fabric.

    Raises EmulationError if there is no such host or program.
    """
    argv = running.command_on(host, running.words_on(words))
    environment = {**os.environ, **running.environment}
    sys.stdout.flush()
    running.prioritise()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and so would the program
    os.execvpe(argv[0], argv, environment)  # noqa: S606 - no shell
