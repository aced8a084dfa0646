"""The part of ``knotless check`` that tries failures, also after the remedies that it proposes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from knotless.base.counting import counted
from knotless.cli.commands.check.options import FailureOptions
from knotless.cli.output import say
from knotless.cli.progress import Bar, terminated_as_interrupted
from knotless.importers.fabric import ImportedFabric
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.verification.check_state import ShownFailureTable
from knotless.verification.failure_models import EngineModel, TablesModel
from knotless.verification.failures import FailureModel, FailureTable
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.remedies import Remedy, remedies_of

MOST_GROUPS = 20
"""Limit of the groups of failures that are printed; JSON has all."""


def evaluate_failures(model: FailureModel, options: FailureOptions) -> FailureTable:
    """Evaluate failures with a progress bar until all are done or the user interrupts."""
    table = FailureTable(model, options.max_failed, options.seed, options.samples)
    with (
        terminated_as_interrupted(),
        Bar("failures", total=table.planned, transient=True) as bar,
    ):
        try:
            for _ in table.evaluate():
                bar.update(advance=1)
        except KeyboardInterrupt:
            tried = f"{len(table.verdicts)} of {table.planned} failures"
            say(f"interrupted after {tried}", err=True)
    return table


def engine_failure_table(fabric: Fabric, options: FailureOptions) -> FailureTable:
    """Return the failure table of a fabric whose routes one of our engines computes again."""
    return evaluate_failures(
        EngineModel(fabric, PlanRequest.from_options(engine=options.engine)), options
    )


def report_of(table: FailureTable) -> ShownFailureTable:
    """Return what is shown of a failure table."""
    survives = table.acyclic is True and table.whole
    lines = tuple(_lines(table))
    return ShownFailureTable(table.acyclic, survives, _as_json(table), lines)


def _as_json(table: FailureTable) -> dict[str, object]:
    worst, acyclic = table.worst, table.acyclic
    return {
        "failures": [verdict.as_json() for verdict in table.verdicts],
        "reaction": table.reaction,
        "failures_total": table.total,
        "failures_tried": len(table.verdicts),
        "failures_seed": table.seed,
        "failures_acyclic": acyclic if table.whole else acyclic and None,
        "failures_intact": table.intact.as_json(),
        "model_differences": table.differences,
        "failure_groups": [group.as_json() for group in table.groups],
        "worst_failure": None
        if worst is None
        else {**worst.as_json(), "witnesses": [witness.as_json() for witness in worst.witnesses]},
    }


def _lines(table: FailureTable) -> Iterator[str]:
    tried, drawn = len(table.verdicts), table.planned < table.total
    of_what = "failures" if table.max_failed == 1 else "sets of 1 or 2 failures"
    scope = f"{table.total} {of_what}"
    how = f"{tried} tried" + (f", drawn with seed {table.seed}" if drawn else "")
    yield f"what if something fails ({scope}, {how}; routing reacts: {table.reaction})"
    if table.differences:
        yield (
            f"note: without failures the model {table.reaction} differs from the routes that"
            f" were read in {table.differences} next-hop sets"
        )
    intact = table.intact
    if intact.acyclic is not True:
        yield f"without failures the model {intact.text}: {_ring(intact.cycle)}"
    groups = table.groups
    for group in groups[:MOST_GROUPS]:
        lost = (
            f"; packets lost of up to {counted(group.undelivered, 'pairs')}"
            if group.undelivered
            else ""
        )
        like = " + ".join(group.first.failed)
        yield f"{group.count} like {like}: {group.first.text}{lost}"
    if len(groups) > MOST_GROUPS:
        yield f"and {len(groups) - MOST_GROUPS} more groups"
    worst = table.worst
    if worst is not None:
        yield f"worst: {' + '.join(worst.failed)} fails: {_ring(worst.cycle)}"
        for witness in worst.witnesses:
            yield f"  {witness.text}"
    yield _verdict(table)


def _verdict(table: FailureTable) -> str:
    unsafe = sum(verdict.acyclic is False for verdict in table.verdicts)
    unknown = sum(verdict.acyclic is None for verdict in table.verdicts)
    tried = len(table.verdicts)
    planned = "" if table.whole else f" of {table.planned}"
    failures = f"{counted(tried, 'failures')} tried{planned}"
    if unsafe:
        return f"CAN DEADLOCK after {unsafe} of the {failures}"
    if unknown or table.intact.acyclic is None:
        return f"UNKNOWN whether it can deadlock after {unknown} of the {failures}"
    if table.intact.acyclic is False:
        return f"CAN DEADLOCK without failures; after none of the {failures}"
    return f"cannot deadlock after any of the {failures}"


def _ring(cycle: list[str]) -> str:
    return " -> ".join([*cycle, *cycle[:1]])


def proven_remedies(
    imported: ImportedFabric, verdict: ImportedVerdict, table: FailureTable | None
) -> list[Remedy]:
    """Return the remedies; with a failure table, those that make all of its failures safe."""
    candidates = list(remedies_of(imported, verdict))
    if table is None or table.acyclic is True:
        return candidates
    return [remedy for remedy in candidates if _survives(remedy, table)]


def _survives(remedy: Remedy, table: FailureTable) -> bool:
    if remedy.fabric is None:
        return table.reaction == "static"  # tables that stay gain no dependency
    if remedy.kind == "withdraw-routes" and table.reaction.startswith("bgp"):
        return False  # routing replaces these routes after a failure
    model = TablesModel(remedy.fabric, table.reaction)
    after = FailureTable(model, table.max_failed, table.seed, table.limit)
    tried = islice(after.evaluate(), len(table.verdicts))
    return after.intact.acyclic is not False and all(
        verdict.acyclic is not False for verdict in tried
    )
