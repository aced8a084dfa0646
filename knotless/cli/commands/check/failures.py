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
from knotless.verification.check_state import ShownCertificate
from knotless.verification.failure_models import EngineModel, TablesModel
from knotless.verification.failures import Certificate, FailureModel
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.remedies import Remedy, remedies_of

MOST_GROUPS = 20
"""Limit of the groups of failures that are printed; JSON has all."""


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


def report_of(certificate: Certificate) -> ShownCertificate:
    """Return what is shown of a certificate."""
    survives = certificate.acyclic is True and certificate.whole
    lines = tuple(_lines(certificate))
    return ShownCertificate(certificate.acyclic, survives, _as_json(certificate), lines)


def _as_json(certificate: Certificate) -> dict[str, object]:
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


def _lines(certificate: Certificate) -> Iterator[str]:
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
        lost = (
            f"; packets lost of up to {counted(group.undelivered, 'pairs')}"
            if group.undelivered
            else ""
        )
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
    failures = f"{counted(tried, 'failures')} tried{planned}"
    if unsafe:
        return f"CAN DEADLOCK after {unsafe} of the {failures}"
    if unknown or certificate.intact.acyclic is None:
        return f"UNKNOWN whether it can deadlock after {unknown} of the {failures}"
    if certificate.intact.acyclic is False:
        return f"CAN DEADLOCK without failures; after none of the {failures}"
    return f"cannot deadlock after any of the {failures}"


def _ring(cycle: list[str]) -> str:
    return " -> ".join([*cycle, *cycle[:1]])


def proven_remedies(
    imported: ImportedFabric, verdict: ImportedVerdict, certificate: Certificate | None
) -> list[Remedy]:
    """Return the remedies; with a certificate, those that make all of its failures safe."""
    candidates = list(remedies_of(imported, verdict))
    if certificate is None or certificate.acyclic is True:
        return candidates
    return [remedy for remedy in candidates if _survives(remedy, certificate)]


def _survives(remedy: Remedy, certificate: Certificate) -> bool:
    if remedy.fabric is None:
        return certificate.reaction == "static"  # tables that stay gain no dependency
    if remedy.kind == "withdraw-routes" and certificate.reaction.startswith("bgp"):
        return False  # routing replaces these routes after a failure
    model = TablesModel(remedy.fabric, certificate.reaction)
    after = Certificate(model, certificate.max_failed, certificate.seed, certificate.limit)
    tried = islice(after.evaluate(), len(certificate.verdicts))
    return after.intact.acyclic is not False and all(
        verdict.acyclic is not False for verdict in tried
    )
