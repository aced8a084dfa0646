"""``knotless triage``: why queues of a real fabric are paused."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict

import click

from knotless.base.counting import counted
from knotless.base.errors import KnotlessError
from knotless.base.printable import listed
from knotless.cli.answer import (
    Answer,
    Cycle,
    Figure,
    Group,
    Headline,
    Hint,
    Several,
    Tone,
    print_answer,
)
from knotless.cli.commands._verdict_answer import NOTES, not_read_lines
from knotless.cli.options import details_option, json_option, print_json
from knotless.forwarding.openflow.directory import is_dir_of_rules
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
@details_option
@json_option
def command(paths: tuple[str, ...], hosts: tuple[str, ...], details: bool, as_json: bool) -> None:
    """Say why queues of SONiC switches are paused, or were.

    PATH is a folder, archive or file as for knotless check; see docs/triage.md for what tells about
    pauses. The answer is a deadlock, with its queues; or its root, a port to a host that pauses or
    an overloaded switch, with the pairs of hosts that it blocks; or that not enough was read. The
    exit status is 0 if nothing is or was paused, else 1. Storms that are over count as well, and
    so do counters of PFC frames. Files that were not read are listed.

    Example: knotless triage sonic_dump_*.tar.gz

    Example: knotless triage my-fabric --hosts 'gpu-*' --json
    """
    if is_dir_of_rules(paths[0]):
        raise KnotlessError(
            f"{paths[0]}: a folder of rules, without the state of switches that triage needs:"
            f" 'knotless check {paths[0]}' judges it"
        )
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
        unread = [*not_read_lines(not_read)]
        answer = _answer(paths, hosts, imported.fabric.name, result, unread)
        print_answer(answer, details=details)
    sys.exit(0 if result.answer == "not-paused" else 1)


def _answer(
    paths: Sequence[str], hosts: Sequence[str], name: str, result: Triage, not_read: list[str]
) -> Answer:
    named = [*paths, *(word for pattern in hosts for word in ("--hosts", pattern))]
    seen = "are paused" if result.certain else "were paused at some time, by counters"
    roots = [f"{root.port or root.switch}: {root.evidence}" for root in result.roots]
    behind = [
        f"behind {root.port or root.switch} wait: {listed(root.behind, _SHOWN)}"
        for root in result.roots
        if root.behind
    ]
    return Answer(
        _headline(name, result),
        why=[
            *(Cycle(cycle, members="queues") for cycle in result.deadlocks),
            Several([f"missing: {line}" for line in result.missing], "missing facts"),
            # The first root is the answer itself.
            Several([root.text for root in result.roots[result.answer == "root" :]], "roots"),
            Several(roots, "roots"),
            Several(behind, "roots"),
            *([f"queues that {seen}: {listed(result.queues, _SHOWN)}"] if result.queues else []),
        ],
        figures=[
            Figure("queues", len(result.queues), "paused" if result.certain else "once paused"),
            Figure("blocked", max((root.pairs for root in result.roots), default=0), "pairs"),
        ],
        remarks=[
            Several([f"note: {line}" for line in result.notes], "notes", NOTES),
            Several(not_read, "reasons why files were not read", NOTES),
        ],
        hints=[Hint("see whether it can deadlock", ["knotless", "check", *named])],
        details=[Group("queues", result.queues)],
    )


def _headline(name: str, result: Triage) -> Headline:
    """Return the answer; what is missing leaves open whether a root is the only one."""
    if result.answer == "deadlock":
        more = len(result.deadlocks) - 1
        rest = f"of {counted(len(result.deadlocks[0]), 'queues')}" + (
            f", and {more} more" if more else ""
        )
        return Headline(name, "deadlock", rest, Tone.BAD)
    if result.answer == "not-enough":
        what = "why queues are paused" if result.queues else "whether queues are paused"
        return Headline(name, "UNKNOWN", what, Tone.OPEN)
    if result.answer == "root":
        return Headline(name, "no cycle", f", {result.roots[0].text}", Tone.OPEN)
    return Headline(name, "nothing is paused")
