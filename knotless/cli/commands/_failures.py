"""The part of ``knotless check`` that tries failures: options, progress, results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from knotless.cli import complete
from knotless.cli.commands._progress import Bar, terminated_as_interrupted
from knotless.cli.output import say
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.verification.failure_models import EngineModel
from knotless.verification.failures import Certificate, FailureModel

Command = TypeVar("Command", bound=Callable[..., Any])
REACTIONS = ("bgp", "bgp-valley-free", "static", "local", "engine")
MOST_GROUPS = 20
"""Limit of the groups of failures that are printed; JSON has all."""


@dataclass(frozen=True)
class FailureOptions:
    """The failures to try, sets of at most ``max_failed``; routing's reaction (None: default)."""

    max_failed: int
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


def certified(model: FailureModel, options: FailureOptions) -> Certificate:
    """Evaluate failures with a progress bar until all are done or the user interrupts."""
    certificate = Certificate(model, options.max_failed, options.seed, options.samples)
    with (
        terminated_as_interrupted(),
        Bar("failures", total=certificate.planned, transient=True) as bar,
    ):
        try:
            for _ in certificate.evaluate():
                bar.update(advance=1)
        except KeyboardInterrupt:
            tried = f"{len(certificate.verdicts)} of {certificate.planned} failures"
            say(f"interrupted after {tried}", err=True)
    return certificate


def engine_certificate(fabric: Fabric, options: FailureOptions) -> Certificate:
    """Return the certificate of a fabric whose routes one of our engines computes again."""
    return certified(EngineModel(fabric, PlanRequest.from_options(engine=options.engine)), options)


def certificate_json(certificate: Certificate) -> dict[str, object]:
    """Return what JSON has of a certificate."""
    worst, acyclic = certificate.worst, certificate.acyclic
    return {
        "failures": [verdict.as_json() for verdict in certificate.verdicts],
        "reaction": certificate.reaction,
        "failures_total": certificate.total,
        "failures_tried": len(certificate.verdicts),
        "failures_seed": certificate.seed,
        "failures_acyclic": acyclic if certificate.whole else acyclic and None,
        "failures_intact": certificate.intact.as_json(),
        "model_differences": certificate.differences,
        "failure_groups": [group.as_json() for group in certificate.groups],
        "worst_failure": None
        if worst is None
        else {**worst.as_json(), "witnesses": [witness.as_json() for witness in worst.witnesses]},
    }


def certificate_lines(certificate: Certificate) -> Iterator[str]:
    """Yield what people see of a certificate."""
    tried, drawn = len(certificate.verdicts), certificate.planned < certificate.total
    of_what = "failures" if certificate.max_failed == 1 else "sets of 1 or 2 failures"
    scope = f"{certificate.total} {of_what}"
    how = f"{tried} tried" + (f", drawn with seed {certificate.seed}" if drawn else "")
    yield f"what if something fails ({scope}, {how}; routing reacts: {certificate.reaction})"
    if certificate.differences:
        yield (
            f"note: without failures the model {certificate.reaction} differs from the routes that"
            f" were read in {certificate.differences} next-hop sets"
        )
    intact = certificate.intact
    if intact.acyclic is not True:
        yield f"without failures the model {intact.text}: {_ring(intact.cycle)}"
    groups = certificate.groups
    for group in groups[:MOST_GROUPS]:
        lost = f"; up to {group.undelivered} pairs lose packets" if group.undelivered else ""
        like = " + ".join(group.first.failed)
        yield f"{group.count} like {like}: {group.first.text}{lost}"
    if len(groups) > MOST_GROUPS:
        yield f"and {len(groups) - MOST_GROUPS} more groups"
    worst = certificate.worst
    if worst is not None:
        yield f"worst: {' + '.join(worst.failed)} fails: {_ring(worst.cycle)}"
        for witness in worst.witnesses:
            yield f"  {witness.text}"
    yield _verdict(certificate)


def _verdict(certificate: Certificate) -> str:
    unsafe = sum(verdict.acyclic is False for verdict in certificate.verdicts)
    unknown = sum(verdict.acyclic is None for verdict in certificate.verdicts)
    tried = len(certificate.verdicts)
    planned = "" if certificate.whole else f" of {certificate.planned}"
    failures = f"{tried} failures tried{planned}"
    if unsafe:
        return f"CAN DEADLOCK after {unsafe} of the {failures}"
    if unknown or certificate.intact.acyclic is None:
        return f"UNKNOWN whether it can deadlock after {unknown} of the {failures}"
    if certificate.intact.acyclic is False:
        return f"CAN DEADLOCK without failures; after none of the {failures}"
    return f"cannot deadlock after any of the {failures}"


def _ring(cycle: list[str]) -> str:
    return " -> ".join([*cycle, *cycle[:1]])
