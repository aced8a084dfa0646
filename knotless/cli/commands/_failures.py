"""The part of ``knotless check`` that tries failures: options, progress, results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from knotless.cli import complete
from knotless.cli.commands._progress import Bar, terminated_as_interrupted
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.verification.engine_failures import engine_failures
from knotless.verification.failures import Certificate, Failure, FailureVerdict

Command = TypeVar("Command", bound=Callable[..., Any])
REACTIONS = ("bgp", "bgp-valley-free", "static", "local", "engine")
MOST_GROUPS = 20
"""Limit of the groups of failures that are printed; JSON has all."""


@dataclass(frozen=True)
class FailureOptions:
    """What to try: sets of at most ``most`` failures, and how routing reacts (None: default)."""

    most: int
    react: str | None
    engine: str
    seed: int
    samples: int
    remedies: bool
    export: str | None


def failure_options(command: Command) -> Command:
    """Add the options of failures to a command."""
    for option in reversed(
        [
            click.option(
                "--failures",
                type=int,
                default=0,
                metavar="K",
                help="Also try every failure of a link or switch (1), or every two of them (2).",
            ),
            click.option(
                "--react",
                type=click.Choice(REACTIONS),
                help="How routing reacts to a failure. Default: bgp for routers, else static.",
            ),
            click.option(
                "--engine",
                default="auto",
                show_default=True,
                shell_complete=complete.engines,
                help="The engine of --react engine.",
            ),
            click.option("--seed", default=1, show_default=True, help="Seed of samples."),
            click.option(
                "--samples",
                default=20_000,
                show_default=True,
                help="Pairs of failures to try; of more, this many are drawn.",
            ),
            click.option("--remedies", is_flag=True, help="Propose changes, each proven safe."),
            click.option(
                "--export",
                metavar="DIR",
                help="Write the remedies as files for SONiC, FRR, OpenSM or Open vSwitch.",
            ),
        ]
    ):
        command = option(command)
    return command


def evaluated(
    made: Certificate,
    failures: Iterable[Failure],
    evaluate: Callable[[Failure], FailureVerdict],
) -> Certificate:
    """Evaluate failures with a progress bar until all are done or the user interrupts."""
    with (
        terminated_as_interrupted(),
        Bar("failures", total=made.planned, transient=True) as bar,
    ):
        try:
            for failure in failures:
                made.add(failure, evaluate(failure))
                bar.update(advance=1)
        except KeyboardInterrupt:
            done, all_of = len(made.verdicts), made.planned
            click.echo(f"interrupted after {done} of {all_of} failures", err=True)
    return made


def of_engine(fabric: Fabric, options: FailureOptions) -> Certificate:
    """Return the certificate of a fabric whose routes one of our engines recomputes."""
    request = PlanRequest.of(engine=options.engine)
    return evaluated(*engine_failures(fabric, request, options.most, options.seed, options.samples))


def certificate_json(made: Certificate) -> dict[str, object]:
    """Return what JSON has of a certificate."""
    worst = made.worst
    return {
        "failures": [of.as_json() for of in made.verdicts],
        "reaction": made.reaction,
        "failures_total": made.total,
        "failures_tried": len(made.verdicts),
        "failures_seed": made.seed,
        "failures_acyclic": made.acyclic if made.whole else made.acyclic and None,
        "failures_intact": made.intact.as_json(),
        "model_differences": made.differences,
        "failure_groups": [group.as_json() for group in made.groups],
        "worst_failure": None
        if worst is None
        else {**worst.as_json(), "witnesses": [of.as_json() for of in worst.witnesses]},
    }


def certificate_lines(made: Certificate) -> Iterator[str]:
    """Yield what people see of a certificate."""
    tried, drawn = len(made.verdicts), made.planned < made.total
    what = f"{made.total} failures" if made.most == 1 else f"{made.total} sets of 1 or 2 failures"
    how = f"{tried} tried" + (f", drawn with seed {made.seed}" if drawn else "")
    yield f"what if something fails ({what}, {how}; routing reacts: {made.reaction})"
    if made.differences:
        yield (
            f"note: without failures the model {made.reaction} differs from the routes that were"
            f" read in {made.differences} next-hop sets"
        )
    if made.intact.acyclic is not True:
        yield f"without failures the model {made.intact.text}: {_ring(made.intact.cycle)}"
    groups = made.groups
    for group in groups[:MOST_GROUPS]:
        lost = f"; up to {group.undelivered} pairs lose packets" if group.undelivered else ""
        like = " + ".join(group.first.failed)
        yield f"{group.count} like {like}: {group.first.text}{lost}"
    if len(groups) > MOST_GROUPS:
        yield f"and {len(groups) - MOST_GROUPS} more groups"
    worst = made.worst
    if worst is not None:
        yield f"worst: {' + '.join(worst.failed)} fails: {_ring(worst.cycle)}"
        for of in worst.witnesses:
            yield f"  {of.packet} holds {of.held} while it waits for {of.wanted}"
    yield _verdict(made)


def _verdict(made: Certificate) -> str:
    unsafe = sum(of.acyclic is False for of in made.verdicts)
    unknown = sum(of.acyclic is None for of in made.verdicts)
    tried = len(made.verdicts)
    of = f"{tried} failures tried" + ("" if made.whole else f" of {made.planned}")
    if unsafe:
        return f"CAN DEADLOCK after {unsafe} of the {of}"
    if unknown or made.intact.acyclic is None:
        return f"UNKNOWN whether it can deadlock after {unknown} of the {of}"
    if made.intact.acyclic is False:
        return f"CAN DEADLOCK without failures; after none of the {of}"
    return f"cannot deadlock after any of the {of}"


def _ring(cycle: list[str]) -> str:
    return " -> ".join([*cycle, *cycle[:1]])
