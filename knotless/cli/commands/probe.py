"""``knotless probe``: test a running fabric with crafted frames."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from knotless.base.counting import counted
from knotless.base.name_lists import choice
from knotless.cli.answer import Answer, Headline, Several, Tone, print_answer
from knotless.cli.numbers import Whole
from knotless.cli.options import json_option, name_option
from knotless.cli.output import say_json
from knotless.cli.probes import Finding, named, names
from knotless.cli.progress import Bar
from knotless.emulation.names import names_of
from knotless.emulation.requirements import require_fabrics

EXAMPLE = """\b
Example: knotless up torus,4,4 --engine dor; knotless probe; knotless down
         knotless probe --only path --pair h1 h16 --json
"""


@click.command("probe", epilog=EXAMPLE)
@name_option
@click.option("--only", help=f"Some of {','.join(names())} (default: all).")
@click.option(
    "--pair",
    "pairs",
    type=(str, str),
    multiple=True,
    metavar="FROM TO",
    help="Hosts whose path is traced; the first pair also misbehaves in forgery and pause.",
)
@click.option(
    "--pairs",
    "count",
    type=Whole(1, 1000),
    default=4,
    show_default=True,
    help="Without --pair: this number of pairs, half the fabric apart.",
)
@json_option
def command(
    name: str, only: str | None, pairs: tuple[tuple[str, str], ...], count: int, as_json: bool
) -> None:
    """Send crafted frames (Scapy) through a running fabric and capture them on every link.

    path: each frame takes its planned path, under ECMP the one that the hash gives, with the
    planned VLAN tag and priority on each link.
    forgery: frames of a host with a forged source MAC, a tag or two tags are dropped and counted.
    pause: PAUSE and PFC frames of a host stop its own link and are never forwarded.

    The exit status is 0 if all findings are good, else 1.
    """
    chosen = choice(only, names(), "--only")
    require_fabrics()
    from knotless.cli.probes._target import target

    probed = target(names_of(name), pairs, count)
    findings: list[Finding] = []
    with Bar("probing", transient=True, counted=False) as bar:
        for part in chosen:
            for finding in named(part)(probed):
                findings.append(finding)
                bar.update(description=f"{finding.probe} {finding.subject}")
    good = all(finding.ok for finding in findings)
    if as_json:
        rows = [vars(finding) for finding in findings]
        say_json({"fabric": probed.fabric.name, "ok": good, "findings": rows})
    else:
        print_answer(_answer(probed.fabric.name, findings))
    sys.exit(0 if good else 1)


def _answer(fabric: str, findings: Sequence[Finding]) -> Answer:
    """Return whether all findings are good, those that are not first."""
    lines = [
        f"{'ok ' if each.ok else 'BAD'}  {each.probe:8}  {each.subject}: {each.text}"
        for each in sorted(findings, key=lambda each: each.ok)
    ]
    bad = sum(not each.ok for each in findings)
    if bad:
        headline = Headline(
            fabric, f"{bad} of {counted(len(findings), 'findings')} BAD", tone=Tone.BAD
        )
    else:
        headline = Headline(fabric, "as planned", f"in {counted(len(findings), 'findings')}")
    return Answer(headline, why=[Several(lines, "findings", len(lines))])
