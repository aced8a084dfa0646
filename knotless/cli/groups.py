"""All commands, in the groups of ``knotless --help``, each with a sentence.

``--help`` and completion read this table, so that they start without loading any command. A test
compares it with the modules of :mod:`knotless.cli.commands` and of
:mod:`knotless_experiments.commands`, which nothing else here knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import click

_UNLIMITED = 10_000


class SuggestingGroup(click.Group):
    """A :class:`click.Group` that suggests commands, and whose help cuts no description."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with all of their descriptions."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(_UNLIMITED))
                    for name, command in commands
                    if command is not None
                ]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; raises UsageError, with suggestions, if there is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            hint = suggestion(args[0], self.list_commands(ctx))
            error.message = f"{error.message.rstrip('.')}{hint}"
            raise


def suggestion(word: str, names: Sequence[str]) -> str:
    """Return ``"; did you mean ...?"`` for a word that is none of ``names``, or nothing."""
    similar = get_close_matches(word, names)
    return f"; did you mean {' or '.join(similar)}?" if similar else ""


GROUPS: Mapping[str, Mapping[str, str]] = {
    "Design": {
        "topology": "Describe a fabric, draw it, or write it to a file.",
        "plan": "Plan routes, and say whether they can deadlock.",
        "advise": "Plan with every engine, and say which fits best.",
        "flows": "Write the OpenFlow rules of a plan.",
        "export": "Write a plan for ordinary 802.1Q switches.",
        "schedule": "Make a contention-free all-to-all schedule.",
    },
    "Judge": {
        "check": "Say whether rules or files of switches can deadlock.",
        "verify": "Have a proven program check what check --proof wrote.",
        "triage": "Say why queues of a real fabric are paused.",
        "analyse": "Compute the loads and fair rates of a traffic pattern.",
        "simulate": "Simulate traffic packet by packet, in virtual time.",
    },
    "Run": {
        "up": "Start a fabric in the background.",
        "down": "Stop a fabric, and remove all that belongs to it.",
        "lab": "Start a fabric, and open the Mininet prompt.",
        "mn": "Run Mininet's command on lossless links.",
        "exec": "Run a program on a host of a running fabric.",
        "attach": "Open the prompt of a running fabric, or a host's shell.",
        "status": "Show running fabrics, their rules and deadlocks.",
        "top": "Show the busiest channels of a running fabric.",
        "web": "Serve a live page of a running fabric.",
        "traffic": "Start, stop or show traffic on a running fabric.",
        "freeze": "Deadlock a running fabric whose rules allow it.",
        "release": "End a deadlock by dropping all queued frames.",
    },
    "Operate": {
        "change": "Change the plan of a running fabric, in proven steps.",
        "cut": "Cut a link of a running fabric.",
        "mend": "Restore a link of a running fabric.",
        "link": "Change rate, delay and loss of a link of a running fabric.",
        "switch": "Stop, start or restart switches of a running fabric.",
        "drain": "Have routes leave a link or switch, for maintenance.",
        "undrain": "Have routes use a drained link or switch again.",
        "controller": "Run the controller of switches, or restart one.",
        "probe": "Send crafted frames through a running fabric.",
        "capture": "Capture a link of a running fabric to a pcap file.",
    },
    "Measure": {
        "run": "Run an experiment, and write its results.",
        "sweep": "Run every combination of the settings in a file.",
        "report": "Write the report of a run again, or compare runs.",
        "reproduction": "Store runs, and write the pages that show them.",
        "record": "Record all channels of a running fabric.",
        "replay": "Serve a page of a recorded run or of a verdict.",
    },
    "Learn": {
        "help": "Say where to begin, or explain a command or a topic.",
        "lab-check": "Say what is still wrong with the work on a lab.",
        "completion": "Print the completion script of a shell.",
    },
}
EXPERIMENTS = "knotless_experiments"
OF_EXPERIMENTS = ("run", "sweep", "report", "reproduction")


def module_of(command: str) -> str:
    """Return the name of the module of a command."""
    of_experiments = command in OF_EXPERIMENTS
    package = "knotless_experiments.commands" if of_experiments else "knotless.cli.commands"
    return f"{package}.{command.replace('-', '_')}"


def commands() -> list[str]:
    """Return the names of all commands, in alphabetical order."""
    return sorted(name for group in GROUPS.values() for name in group)
