"""``knotless advise``: which engine to choose for a fabric, and why."""

from __future__ import annotations

import sys

import click

from knotless.cli.commands._comparison import compared, print_comparison
from knotless.cli.commands._options import fabric_of, json_option, print_json, spec_argument
from knotless.cli.commands._plan_options import plan_options
from knotless.cli.output import say
from knotless.routing.request import PlanRequest
from knotless.verification.advice import advise
from knotless.verification.comparison import ALL


@click.command(name="advise")
@spec_argument
@plan_options(engine=ALL)
@json_option
def command(spec: str, request: PlanRequest, as_json: bool) -> None:
    """Plan SPEC with every engine that can route it, and say which to choose and why.

    Advised is, among the plans that cannot deadlock under the flow control, the one whose most
    loaded channel carries the fewest paths; then the one with the shortest paths, the fewest
    virtual channels, VLANs and rules. --engine limits the choice (a,b,c). The exit status is 1 if
    no plan is free of deadlock.

    Example: knotless advise torus,4,4

    Example: knotless advise random,16 --vcs 1 --flow-control pause
    """
    fabric = fabric_of(spec)
    rows = compared(fabric, request, quiet=as_json)
    advice = advise(fabric, rows)
    if as_json:
        print_json({"fabric": fabric.name, **advice.as_json()})
    else:
        print_comparison(spec, rows, advice.reasons)
        say(advice.reason)
        for line in advice.cheaper:
            say(f"cheaper: {line}")
    sys.exit(0 if advice.engine is not None else 1)
