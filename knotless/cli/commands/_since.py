"""``knotless check --write-state`` and ``--since``: checks that go on from an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, TypeVar

import click

from knotless.base.errors import KnotlessError, StateError
from knotless.base.flow_control import AUTO
from knotless.cli.commands._failure_options import FailureOptions
from knotless.cli.commands._print_imported import print_imported
from knotless.cli.output import say
from knotless.importers.manifest import changes_since, listed_now
from knotless.verification.check_state import CheckState, options_of

Command = TypeVar("Command", bound=Callable[..., Any])


def since_options(command: Command) -> Command:
    """Add the options of states."""
    for option in reversed(
        [
            click.option(
                "--write-state",
                metavar="F",
                help="Keep what this check reads and finds in a file, for --since.",
            ),
            click.option(
                "--since",
                metavar="F",
                help="Go on from the check that wrote this file: only what changed is read again.",
            ),
            click.option(
                "--rehash",
                is_flag=True,
                help="With --since, compare the content of all files, whatever their times say.",
            ),
        ]
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class SinceOptions:
    """The files of states to write and to go on from, and whether all files are compared."""

    write: str | None
    since: str | None
    rehash: bool

    @property
    def name(self) -> str | None:
        """The option that is given; None if none is."""
        if self.since is not None:
            return "--since"
        return None if self.write is None else "--write-state"

    def refuse_with(self, others: Mapping[str, object]) -> None:
        """Raise KnotlessError if an option is given that needs more than a verdict."""
        if self.rehash and self.since is None:
            raise KnotlessError("--rehash says how --since compares files: give both")
        if self.write is not None and self.since is not None:
            raise KnotlessError("--write-state keeps a full check, --since avoids one: give either")
        given = [name for name, value in others.items() if value]
        if given and self.name is not None:
            raise KnotlessError(f"{self.name} is for verdicts, not with {given[0]}")


def state_options(
    paths: Sequence[str], hosts: Sequence[str], routes_by: str | None, failures: FailureOptions
) -> dict[str, Any]:
    """Return what a state is for."""
    tried = astuple(failures)[:-2] if failures.max_failed else ()
    return options_of(paths, hosts, routes_by, tried)


def print_unchanged(
    reuse: SinceOptions,
    paths: Sequence[str],
    flow_control: str,
    hosts: Sequence[str],
    routes_by: str | None,
    failures: FailureOptions,
    *,
    sarif: str | None,
    details: bool,
    as_json: bool,
) -> None:
    """Print the verdict and exit, if it follows from the state; else say why it does not."""
    if flow_control != AUTO or reuse.since is None:
        return
    try:
        state = CheckState.read(reuse.since, state_options(paths, hosts, routes_by, failures))
        changes = changes_since(state.files, listed_now(paths), rehash=reuse.rehash)
        verdict = state.verdict
        if changes:
            from knotless.verification.route_changes import verdict_after  # loads NumPy

            verdict = verdict_after(state, changes)
    except StateError as error:
        say(f"knotless: {error}: all is checked", err=True)
        return
    except KnotlessError:
        return  # reading all files says what is wrong
    print_imported(
        verdict,
        paths,
        hosts,
        routes_by,
        state.certificate,
        sarif=sarif,
        details=details,
        as_json=as_json,
    )
