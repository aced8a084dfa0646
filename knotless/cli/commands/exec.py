"""``knotless exec``: run a program on a host of a running fabric."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from knotless.cli import complete
from knotless.cli.commands._observed import observed
from knotless.cli.options import observed_name_option
from knotless.cli.output import say
from knotless.emulation.real_time import RealTimeMeasurement
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
    names of hosts stand for their addresses. At its end a line says by how much the rates and times
    that it has measured are wrong, if the fabric was slower than real time.
    """
    running = RunningFabric(observed(name))
    measured = RealTimeMeasurement(running)
    if not measured.may_be_wrong:
        replace_by(running, host, words)
    status = run_on(running, host, words)
    if caution := measured.caution():
        say(f"knotless: {caution}", err=True)
    sys.exit(status)


def run_on(running: RunningFabric, host: str, words: Sequence[str]) -> int:
    """Run a program on a host, as nice to others as all of the fabric; return its exit status.

    It gets the signals that this process gets, and ends with it. Raises EmulationError if there is
    no such host or program.
    """
    argv = running.program_on(host, words)
    running.prioritise()
    ends_with_us = ["setpriv", "--pdeathsig", "KILL", "--"]
    with subprocess.Popen([*ends_with_us, *argv], env=environment_of(running)) as program:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program has it from the terminal
        for each in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, lambda number, _frame: program.send_signal(number))
        status = program.wait()
    return status if status >= 0 else 128 - status


def environment_of(running: RunningFabric) -> dict[str, str]:
    """Return the environment variables of a program on a host."""
    return {**os.environ, **running.environment}


def replace_by(running: RunningFabric, host: str, words: Sequence[str]) -> NoReturn:
    """Become a program on a host, as nice to others as all of the fabric.

    Raises EmulationError if there is no such host or program.
    """
    argv = running.program_on(host, words)
    sys.stdout.flush()
    running.prioritise()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and so would the program
    os.execvpe(argv[0], argv, environment_of(running))  # noqa: S606 - no shell
