"""``knotless check --since``: a check that goes on from an earlier one."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

from knotless.base.errors import KnotlessError, StateError
from knotless.base.flow_control import AUTO
from knotless.cli.commands.check.answer import Extras, print_imported
from knotless.cli.commands.check.options import CheckOptions
from knotless.cli.output import say
from knotless.importers.manifest import changes_since, listed_now
from knotless.verification.check_state import CheckState, options_of


def what_a_state_is_for(options: CheckOptions) -> dict[str, Any]:
    """Return the options with which a state was made, as it keeps them."""
    source, failures = options.source, options.failures
    tried = astuple(failures)[:-2] if failures.max_failed else ()
    return options_of(source.paths, source.hosts, source.routes, tried)


def print_unchanged(options: CheckOptions) -> None:
    """Print the verdict and exit, if it follows from the state; else say why it does not."""
    source, states = options.source, options.states
    if source.flow_control != AUTO or states.since is None:
        return
    key = states.key
    try:
        state = CheckState.read(states.since, what_a_state_is_for(options), key)
        changes = changes_since(state.files, listed_now(source.paths), rehash=states.rehash)
        verdict = state.verdict
        if changes:
            from knotless.verification.route_changes import verdict_after  # loads NumPy

            verdict = verdict_after(state, changes)
    except StateError as error:
        say(f"knotless: {error}: all is checked", err=True)
        return
    except KnotlessError:
        return  # reading all files says what is wrong
    rests = "written with the key" if key else "and on whoever could write that file"
    say(f"knotless: the verdict rests on {states.since}, {rests}", err=True)
    print_imported(verdict, source, Extras(state.failure_table), options.output)
