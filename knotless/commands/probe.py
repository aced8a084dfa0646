"""``knotless probe``: crafted frames on a running fabric, and what becomes of them."""

from __future__ import annotations

import json
import sys

import click

from common.errors import KnotlessError
from emulation.names import DEFAULT_NAME, names_of
from emulation.runtime import require_root
from knotless.commands._options import json_option
from knotless.probes import PROBES, Finding, named

EXAMPLE = """\b
Example: knotless up torus,4,4 --engine dor; knotless probe; knotless down
         knotless probe --only path --pair h1 h16 --json
"""


@click.command("probe", epilog=EXAMPLE)
@click.option("--name", default=DEFAULT_NAME, show_default=True, help="The running fabric's name.")
@click.option("--only", help=f"Some of {','.join(PROBES)} (default: all).")
@click.option(
    "--pair",
    "pairs",
    type=(str, str),
    multiple=True,
    metavar="FROM TO",
    help="Hosts whose path is followed; the first pair is who misbehaves, and to whom.",
)
@click.option(
    "--pairs",
    "count",
    type=click.IntRange(1, 1000),
    default=4,
    show_default=True,
    help="Without --pair: so many, half the fabric apart.",
)
@json_option
def command(
    name: str, only: str | None, pairs: tuple[tuple[str, str], ...], count: int, as_json: bool
) -> None:
    """Send crafted frames (Scapy) through a running fabric and look for them on every link.

    path: hop by hop as planned, VLAN tag and priority on each link. forgery: forged source
    MACs, tagged and double-tagged frames of a host are dropped and counted. pause: PAUSE and
    PFC frames of a host stop its own link and are never forwarded.

    Exit status 0 only if everything is as it should be, 1 if not.
    """
    chosen = [part.strip() for part in only.split(",")] if only is not None else list(PROBES)
    for part in chosen:
        if part not in PROBES:
            raise KnotlessError(f"--only: {part[:40]!r} is none of {', '.join(PROBES)}")
    require_root()
    from knotless.probes.target import target

    probed = target(names_of(name), pairs, count)
    findings: list[Finding] = []
    for part in chosen:
        for finding in named(part)(probed):
            findings.append(finding)
            if not as_json:
                mark = (
                    click.style("ok ", fg="green") if finding.ok else click.style("BAD", fg="red")
                )
                click.echo(f"{mark} {finding.probe:8} {finding.subject}: {finding.text}")
    good = all(finding.ok for finding in findings)
    if as_json:
        rows = [vars(finding) for finding in findings]
        click.echo(json.dumps({"fabric": probed.fabric.name, "ok": good, "findings": rows}))
    sys.exit(0 if good else 1)
