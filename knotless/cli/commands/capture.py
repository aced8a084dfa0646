"""``knotless capture``: write the frames of a link of a running fabric to a pcap file."""

from __future__ import annotations

from pathlib import Path

import click

from knotless.base.counting import counted
from knotless.cli.answer import Answer, Headline, print_answer
from knotless.cli.commands._observed import observed
from knotless.cli.options import (
    duration_option,
    json_option,
    link_argument,
    observed_name_option,
    print_json,
)
from knotless.cli.progress import Bar
from knotless.emulation import captures

EXAMPLE = """\b
Example: knotless capture s1:2 s1.pcap
         knotless capture h1 h1.pcap --duration 2
"""


@click.command("capture", epilog=EXAMPLE)
@link_argument
@click.argument("file", metavar="FILE.pcap")
@duration_option(10.0)
@observed_name_option
@json_option
def command(link: str, file: str, duration_s: float, name: str | None, as_json: bool) -> None:
    """Capture both directions of LINK (s1:2, s1-s2 or h1), PAUSE included; times are virtual."""
    with Bar("capturing", duration_s, counted=False, transient=True) as bar:
        result = captures.capture(
            observed(name),
            link,
            Path(file).absolute(),
            duration_s,
            lambda passed_s: bar.update(completed=passed_s),
        )
    if as_json:
        print_json({"link": result.link, "file": str(result.file), "frames": result.frames})
    else:
        headline = Headline(file, counted(result.frames, "frames"), f"of {result.link}, both ways")
        print_answer(Answer(headline))
