"""``knotless drain``: take links and switches of a running fabric out of its routes."""

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
Example: knotless drain s1-s2
         knotless drain s5 --dry-run
         knotless undrain s5
"""


@click.command("drain", epilog=EXAMPLE)
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
    """Have the routes leave each PART, so that it may be touched: s5, s1-s2, s1:2-s2:3.

    The routes change in proven steps, without loss. No route uses a drained link. A drained switch
    forwards nothing between its neighbours; its own hosts keep one link. The exit status is 0 when
    no frame is on the part any more. It stays drained until knotless undrain, also if the
    controller starts again.
    """
    body = {"parts": list(parts), "dry_run": dry_run}
    perform(name, "/drain", body, out=out, timeout_s=timeout_s, as_json=as_json)
