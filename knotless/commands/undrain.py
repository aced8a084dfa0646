"""``knotless undrain``: use drained links and switches again."""

from __future__ import annotations

import click

from knotless.commands._options import (
    dry_run_option,
    json_option,
    name_option,
    out_option,
    timeout_option,
)
from knotless.commands._running import perform

EXAMPLE = """\b
Example: knotless undrain s5 s1-s2
"""


@click.command("undrain", epilog=EXAMPLE)
@click.argument("parts", nargs=-1, required=True, metavar="PART...")
@dry_run_option
@out_option
@timeout_option
@name_option
@json_option
def command(
    parts: tuple[str, ...],
    dry_run: bool,
    out: str | None,
    timeout_s: float,
    name: str,
    as_json: bool,
) -> None:
    """Have the routes use each drained PART again: s5, s1-s2, s1:2-s2:3."""
    body = {"parts": list(parts), "dry_run": dry_run}
    perform(name, "/undrain", body, out=out, timeout_s=timeout_s, as_json=as_json)
