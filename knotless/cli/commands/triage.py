"""``knotless triage``: why queues of a real fabric are paused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict

import click

from knotless.base.errors import KnotlessError
from knotless.base.printable import listed
from knotless.cli.commands._print_imported import not_read_lines
from knotless.cli.options import json_option, print_json
from knotless.cli.output import say
from knotless.importers.fabric import TableFabric
from knotless.importers.paths import read_paths
from knotless.importers.sonic.pauses import pauses_of
from knotless.verification.triage import Triage, triage

_SHOWN = 20
_SHOWN_UNREAD = 5


@click.command(name="triage")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--hosts",
    multiple=True,
    metavar="PATTERN",
    help="Neighbours by LLDP with such names are hosts, as for knotless check.",
)
@json_option
def command(paths: tuple[str, ...], hosts: tuple[str, ...], as_json: bool) -> None:
    """Say why queues of SONiC switches are paused, or were.

    PATH is a folder, archive or file as for knotless check; see docs/triage.md for what tells about
    pauses. The answer is a deadlock, with its queues; or its root, a port to a host that pauses or
    an overloaded switch, with the pairs of hosts that it blocks; or that not enough was read. The
    exit status is 0 if nothing is or was paused, else 1. Storms that are over count as well, and
    so do counters of PFC frames. Files that were not read are listed.

    Example: knotless triage sonic_dump_*.tar.gz

    Example: knotless triage my-fabric --hosts 'gpu-*' --json
    """
    imported = read_paths(paths, hosts)
    if not isinstance(imported, TableFabric) or not imported.configs:
        raise KnotlessError(f"{paths[0]}: triage needs the state of SONiC switches")
    pauses = pauses_of(imported)
    if not pauses.watched:
        unread = [f"{file.file}: {file.text}" for file in imported.not_read]
        raise KnotlessError(
            f"{paths[0]}: nothing tells about pauses; needed are pfcwd show stats and show pfc"
            " counters of each switch, or its APPL_DB or COUNTERS_DB"
            + (f"; not read: {listed(unread, _SHOWN_UNREAD)}" if unread else "")
        )
    result = triage(imported, pauses)
    result.missing += [f"{file.file}: {file.text}" for file in imported.not_read if file.matters]
    not_read = [
        {"file": file.file, "reason": file.reason, "command": file.command}
        for file in imported.not_read
    ]
    if as_json:
        print_json({"answer": result.answer, **asdict(result), "not_read": not_read})
    else:
        for line in (*not_read_lines(not_read), *_lines(result)):
            say(line)
    sys.exit(0 if result.answer == "not-paused" else 1)


def _lines(result: Triage) -> Iterator[str]:
    """Yield what is paused, what is behind each root, and the answer in the last lines."""
    if not result.queues:
        yield "nothing is paused, as far as was read" if result.missing else "nothing is paused"
    else:
        seen = "are paused" if result.certain else "were paused at some time, by counters"
        yield f"{len(result.queues)} queues {seen}: {listed(result.queues, _SHOWN)}"
    for root in result.roots:
        if root.behind:
            yield f"behind {root.port or root.switch} wait: {listed(root.behind, _SHOWN)}"
        yield f"{root.port or root.switch}: {root.evidence}"
    yield from (f"note: {line}" for line in result.notes)
    for cycle in result.deadlocks:
        yield f"a deadlock, {len(cycle)} queues: {' -> '.join([*cycle, cycle[0]])}"
    for root in result.roots:
        yield root.text if result.deadlocks else f"no cycle: {root.text}"
    if result.missing:
        yield f"not enough was read: missing {'; '.join(result.missing)}"
