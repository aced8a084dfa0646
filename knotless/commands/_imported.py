"""``knotless check`` of a fabric of others, read from files."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

import click

from common.errors import KnotlessError
from common.flow_control import AUTO
from forwarding.imported.paths import read_paths
from knotless.commands._options import print_json, print_table
from knotless.commands._trace import follow
from routing.graphs.channels import Channels
from topologies.fabric import Fabric
from verification.imported import (
    SHOWN_MISSING,
    ImportedVerdict,
    SentWitness,
    state_for,
    verdict_of_imported,
)

MOST_LINES = 50
"""Limit of the notes, and of the missing facts, that are printed; JSON has all."""


def check_imported(
    paths: Sequence[str],
    pair: tuple[str, str] | None,
    draw: str | None,
    flow_control: str,
    *,
    as_json: bool,
) -> None:
    """Print the verdict, or the links of one packet; exit with status 1 unless all is well."""
    if flow_control != AUTO:
        raise KnotlessError(
            f"--flow-control {flow_control}: the flow control of {paths[0]} is that of its switches"
        )
    imported = read_paths(paths)
    if pair is not None:
        follow(state_for(imported, *pair), *pair, imported.label, as_json=as_json)
        return
    verdict = verdict_of_imported(imported)
    if draw is not None:
        draw_cycle(imported.fabric, imported.channels, draw, verdict.cycle)
    where = shlex.join(paths)
    if as_json:
        steps = [{**of.as_json(), "command": _command(where, of)} for of in verdict.witnesses]
        print_json({**verdict.as_json(), "witnesses": steps})
    else:
        _print(verdict, where)
    sys.exit(0 if verdict.good else 1)


def draw_cycle(fabric: Fabric, channels: Channels, path: str, cycle: Sequence[str]) -> None:
    """Draw ``fabric`` with a cycle of dependencies in red."""
    from knotless.drawing import draw_fabric  # Matplotlib takes a second to load

    draw_fabric(fabric, path, {channels.end_of(name) for name in cycle})


def _command(where: str, witness: SentWitness) -> str:
    """Return the command that shows the links of the packet."""
    return f"knotless check {where} --pair {witness.source} {shlex.quote(witness.destination)}"


def _print(verdict: ImportedVerdict, where: str) -> None:
    values = verdict.as_json()
    for key in ("fabric", "problems", "witnesses", "missing", "notes", "ignored", "vcs"):
        values.pop(key)
    values["acyclic"] = "unknown" if verdict.acyclic is None else verdict.acyclic
    for vc, acyclic in verdict.vcs.items():
        values[f"virtual channel {vc}"] = "safe" if acyclic else "has a cycle"
    print_table(f"check of {verdict.fabric}", values)
    lines = [*verdict.problems, *(f"note: {line}" for line in verdict.notes[:MOST_LINES])]
    if len(verdict.missing) > SHOWN_MISSING:
        lines += [f"missing: {line}" for line in verdict.missing[:MOST_LINES]]
    if verdict.ignored:
        shown = ", ".join(verdict.ignored[:5])
        more = f" and {len(verdict.ignored) - 5} more" if len(verdict.ignored) > 5 else ""
        lines.append(f"not read: {shown}{more}")
    for line in lines:
        click.echo(line)
    for of in verdict.witnesses:
        click.echo(
            f"{of.source} to {of.destination} with {of.label} {of.value} holds {of.held} while it"
            f" waits for {of.wanted} ({_command(where, of)})"
        )
    click.echo("not all is delivered" if verdict.undelivered else "all is delivered")
    click.echo(verdict.text)
