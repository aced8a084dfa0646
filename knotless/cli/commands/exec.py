"""``knotless exec``: run a program on a host of a running fabric."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
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
_OF_KEYS = (signal.SIGINT, signal.SIGQUIT)
"""Signals that the keys of a terminal send to all programs in its foreground."""
_PASSED_ON = (*_OF_KEYS, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_FIRST_LOOK_S, _LONGEST_BETWEEN_LOOKS_S = 0.5, 60.0


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
    names of hosts stand for their addresses. It sees virtual time, so that a busy machine does not
    change the rates that it measures. Where it does not, a line at its end says by how much they
    are wrong, if the fabric was slower than real time.
    """
    running = RunningFabric(observed(name))
    if running.links == "plain":
        replace_by(running, host, words)
    measured = RealTimeMeasurement(running)
    status = run_on(running, host, words, lambda: measured.look(host))
    if caution := measured.caution():
        say(f"knotless: {caution}", err=True)
    sys.exit(status)


def run_on(
    running: RunningFabric, host: str, words: Sequence[str], look: Callable[[], None]
) -> int:
    """Run a program on a host, as nice to others as all of the fabric; return its exit status.

    It gets the signals that this process gets, stops with it and ends with it. ``look`` is called
    now and then while it runs. Raises EmulationError if there is no such host or program.
    """
    argv = ["setpriv", "--pdeathsig", "KILL", "--"]
    argv += running.program_on(host, words)
    sys.stdout.flush()
    running.prioritise()
    numbers, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for each in _PASSED_ON:
        if signal.getsignal(each) is not signal.SIG_IGN:  # as for nohup(1)
            signal.signal(each, lambda *_: None)
    # Python ignores SIGPIPE, and so would the program.
    pid = os.posix_spawnp(argv[0], argv, environment_of(running), setsigdef=[signal.SIGPIPE])
    look_s = _FIRST_LOOK_S
    while True:
        if not select.select([numbers], [], [], look_s)[0]:
            look()
            look_s = min(2 * look_s, _LONGEST_BETWEEN_LOOKS_S)
            continue
        for number in os.read(numbers, 64):
            if number != signal.SIGCHLD:
                if number not in _OF_KEYS or not _is_in_foreground():
                    os.kill(pid, number)
                continue
            ended, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
            if ended and os.WIFSTOPPED(status):
                os.kill(os.getpid(), signal.SIGSTOP)  # so that a shell sees a stopped job
                os.kill(pid, signal.SIGCONT)
            elif ended:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code


def _is_in_foreground() -> bool:
    """Whether keys of our terminal send signals to us, and so to our program."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)


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
