"""``knotless check --patch``: what changes of configurations would make of a fabric."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from knotless.base.errors import KnotlessError
from knotless.base.files import read_bytes
from knotless.base.flow_control import AUTO
from knotless.cli.commands.check.answer import Extras, print_imported
from knotless.cli.commands.check.options import CheckOptions
from knotless.snapshots import Snapshot, snapshot

MAX_PATCH_BYTES = 64 << 20


def check_patches(options: CheckOptions) -> NoReturn:
    """Print the verdict after changes, and what they change; exit with its status."""
    source = options.source
    if source.flow_control != AUTO:
        raise KnotlessError(
            f"--flow-control {source.flow_control}: the flow control of {source.paths[0]} is that"
            " of its switches"
        )
    before = snapshot(*source.paths, hosts=source.hosts, routes=source.routes)
    after = before
    for text in source.patches:
        switch, _, file = text.partition("=")
        change = read_bytes(file, KnotlessError, MAX_PATCH_BYTES)
        try:
            after = after.with_config_changes({switch: change})
        except KnotlessError as error:
            raise error.within(file) from None
    old, new = before.verdict().source, after.verdict().source
    extras = Extras(before=old, changes=tuple(_changes(before, after)))
    print_imported(new, source, extras, options.output)


def _changes(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """Yield what the changes change, as lines."""
    yield f"before it {before.verdict().text}"
    for one in before.diff(after, most_checks=0).gone:
        if one.rule not in ("deadlock", "unknown"):
            yield f"gone: {one.text}"
    yield "only before and after are judged: a switch divides a patch into steps of its own"
