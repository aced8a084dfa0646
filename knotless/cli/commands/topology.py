"""``knotless topology``: describe a fabric, write it to a file, or draw it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import click

from knotless.base.counting import counted
from knotless.base.errors import KnotlessError
from knotless.base.files import write_whole
from knotless.cli.answer import Answer, Figure, Group, Headline, Hint, print_answer, written
from knotless.cli.options import details_option, fabric_of, json_option, spec_argument
from knotless.cli.output import say
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.files import to_text


@click.command(name="topology")
@spec_argument
@click.option("--out", metavar="F.json", help="Write the fabric to this file as JSON.")
@click.option(
    "--draw",
    metavar="F.svg",
    is_flag=False,
    flag_value="",
    help="Draw the fabric to this file (SVG, PNG or PDF).",
)
@click.option("--ports", is_flag=True, help="With --draw: write the ports of links as well.")
@details_option
@json_option
def command(
    spec: str, out: str | None, draw: str | None, ports: bool, details: bool, as_json: bool
) -> None:
    """Describe the fabric SPEC: a family with sizes (torus,4,4,hosts=2) or a file.

    A file is JSON, GraphML, a graph of NetworkX or Cytoscape as JSON, a list of cables as CSV, a
    topology of containerlab or the output of ibnetdiscover: docs/fabric-files.md.

    Example: knotless topology mesh,4,4,hosts=2 --draw mesh.svg --ports

    Example: knotless topology cables.csv --out fabric.json
    """
    fabric = fabric_of(spec)
    if draw == "":
        name = f"{fabric.name.replace(',', '-').replace('/', '-')}.svg"
        raise KnotlessError(
            f"--draw writes a drawing of {fabric.name}: name its file, such as --draw {name} (or"
            " .png, .pdf)"
        )
    if out is not None:
        write_whole(out, to_text(fabric))
    if draw is not None:
        from knotless.drawing import draw_fabric  # Matplotlib takes a second to load

        draw_fabric(fabric, draw, ports=ports)
    elif ports:
        raise KnotlessError("--ports is for a drawing: add --draw F.svg")
    if as_json:
        say(to_text(fabric), nl=False)
        return
    answer = replace(_answer(spec, fabric), remarks=[*written(drawing=draw, fabric=out)])
    print_answer(answer, details=details)


def _answer(spec: str, fabric: Fabric) -> Answer:
    degrees = sorted(Counter(len(ports) for ports in fabric.neighbours.values()).items())
    rates = sorted(
        {host.rate_mbps for host in fabric.hosts}.union(link.rate_mbps for link in fabric.links)
    )
    counts = {
        "switches": len(fabric.switches),
        "hosts": len(fabric.hosts),
        "links": len(fabric.links),
    }
    total = len(fabric.switches)
    fastest = rates[-1] if len(rates) > 1 else 0
    return Answer(
        Headline(fabric.name, ", ".join(counted(count, what) for what, count in counts.items())),
        figures=[
            *(
                Figure(
                    f"with {counted(degree, 'links')}",
                    count,
                    "switches",
                    whole=total,
                )
                for degree, count in degrees
            ),
            Figure("rate", rates[0] if rates else None, "Mbit/s", also=(fastest, "the fastest")),
        ],
        hints=[
            Hint("plan its routes", ["knotless", "plan", spec]),
            Hint("compare engines", ["knotless", "advise", spec]),
        ],
        details=[
            Group(
                "fabric",
                {
                    **counts,
                    "links_of_a_switch": [
                        f"{degree} ({counted(count, 'switches')})" for degree, count in degrees
                    ],
                    "rate_mbps": [f"{rate:g}" for rate in rates],
                },
            )
        ],
    )
