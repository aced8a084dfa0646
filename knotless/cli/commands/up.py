"""``knotless up``: start a fabric in the background."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from knotless.base.counting import counted
from knotless.cli.answer import Answer, Hint, print_answer
from knotless.cli.commands._fabric import checked_plan_of, fabric_options
from knotless.cli.commands._page import PORT, start_page
from knotless.cli.commands._proven import reason_not_proven, verifier
from knotless.cli.commands._verdict_answer import deadlock_reasons, engine_name, verdict_headline
from knotless.cli.help import Command
from knotless.cli.numbers import Whole
from knotless.cli.options import name_words
from knotless.cli.output import say, say_json
from knotless.cli.progress import spinner
from knotless.emulation.controller import free_port
from knotless.emulation.datapath import text_of
from knotless.emulation.estimate import Estimate, estimate
from knotless.emulation.names import Names, names_of
from knotless.emulation.options import switch_processes
from knotless.emulation.report import report
from knotless.emulation.requirements import require_fabrics
from knotless.emulation.state import write_proof_verdict
from knotless.emulation.supervisor import start
from knotless.routing.request import PlanRequest
from knotless.verification.checked_plan import CheckedPlan

EXAMPLE = """\b
Example: knotless up torus,4,4 --engine dor
         knotless status; knotless check --live; knotless down
         knotless up ring,4 --web
         knotless up fattree2,4 --multipath ecmp
         knotless up ring,4 --engine updown --proven
"""


@click.command("up", cls=Command, epilog=EXAMPLE)
@fabric_options
@click.option(
    "--proven",
    is_flag=True,
    help="Fail unless the program of knotless verify accepts a proof of the installed rules.",
)
@click.option("--web", is_flag=True, help="Serve a live page, as knotless web does.")
@click.option(
    "--web-port",
    type=Whole(0, 65535),
    default=PORT,
    show_default=True,
    help="Port of the page on 127.0.0.1; 0 is any free one.",
)
def command(
    spec: str,
    request: PlanRequest,
    rate: float | None,
    delay: float | None,
    as_json: bool,
    proven: bool,
    web: bool,
    web_port: int,
    **options: Any,
) -> None:
    """Start fabric SPEC in the background; return when every switch has its rules.

    A plan that can deadlock under the flow control in use is refused. With --proven, the rules are
    read back from the switches when all have them. The exit status is 1, and the fabric is not
    ready, unless a proof that they are safe is accepted; it runs on, to be looked at.
    """
    require_fabrics()
    if proven:
        verifier()
    checked = checked_plan_of(spec, request, rate, delay, options)
    takes = estimated(checked, options).text
    if web:
        web_port = free_port(web_port, "port of the page")
    with spinner(f"starting; it takes {takes}") as show:
        start(checked.plan, options, show)
    names = names_of(options["name"])
    if proven:
        _prove(names)
    url = start_page(names, web_port) if web else None
    status = report(names)
    if as_json:
        say_json(status if url is None else {**(status or {}), "web": url})
    else:
        page = None if url is None else f"{url} (token for actions: {names.token_file})"
        print_answer(up_answer(checked, options["name"], text_of(status or {}), takes, page))


def _prove(names: Names) -> None:
    """Judge the rules of a fabric that runs; say why it is not ready, and exit, if they fail.

    ``knotless status`` tells the same, also if this is interrupted.
    """
    write_proof_verdict(names, "nobody has judged them to the end")
    reason = reason_not_proven(names)
    write_proof_verdict(names, reason)
    if reason:
        say(f"knotless: {names.name} runs, but is not ready: {reason}", err=True)
        sys.exit(1)


def up_answer(
    checked: CheckedPlan, name: str, datapath: str, takes: str, page: str | None
) -> Answer:
    """Return what to say about a fabric that runs under ``name``, and what it ``takes``."""
    plan, fabric = checked.plan, checked.plan.fabric
    engine = f"{engine_name(plan.engine)}{plan.choice.mark}"
    which = name_words(name)
    switches, hosts = counted(len(fabric.switches), "switches"), counted(len(fabric.hosts), "hosts")
    return Answer(
        verdict_headline(f"{fabric.name} is up as {name!r}, with {engine}", checked.verdict),
        why=[
            *deadlock_reasons(checked.verdict),
            f"{switches}, {hosts}, {datapath}",
            f"takes {takes}",
            *([] if page is None else [f"page: {page}"]),
        ],
        hints=[
            Hint("open its prompt", ["knotless", "attach", *which]),
            Hint("end it", ["knotless", "down", *which]),
        ],
    )


def estimated(checked: CheckedPlan, options: Mapping[str, Any]) -> Estimate:
    """Return what a fabric takes with these options of the command."""
    fabric, links = checked.plan.fabric, options["links"]
    processes = switch_processes(
        options["switch_processes"],
        fabric,
        links=links,
        datapath=options["datapath"],  # auto counts as userspace, which takes more
        tls=options["tls"],
    )
    return estimate(
        fabric,
        switch_processes=processes,
        controllers=options["controllers"] if options["controller"] == "ryu" else 0,
        mean_switches=checked.verdict.mean_switches,
        emulated=links == "emulated",
    )
