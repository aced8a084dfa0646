"""``knotless check`` of an imported fabric: one that is read from files of its switches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import AUTO
from knotless.base.printable import listed
from knotless.base.verdict_text import SHOWN_MISSING
from knotless.cli.commands._failures import FailureOptions, certified, engine_certificate
from knotless.cli.commands._remedies import proven_remedies, write_remedies
from knotless.cli.commands._sarif import write_sarif
from knotless.cli.commands._trace import follow
from knotless.cli.commands._verdict import draw_cycle, print_verdict
from knotless.cli.commands._write_switch import write_switches
from knotless.cli.output import say
from knotless.importers.fabric import AnyFabric, RulesFabric
from knotless.importers.paths import read_paths
from knotless.importers.reactions import default_reaction
from knotless.verification.failure_models import RulesModel, TablesModel
from knotless.verification.failures import Certificate
from knotless.verification.imported import traffic_for, verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict

MOST_LINES = 50
"""Limit of the notes, and of the missing facts, that are printed; JSON has all."""


def check_imported(
    paths: Sequence[str],
    pair: tuple[str, str] | None,
    draw: str | None,
    flow_control: str,
    *,
    hosts: Sequence[str] = (),
    routes_by: str | None = None,
    failures: FailureOptions,
    write_switch: str | None = None,
    sarif: str | None = None,
    as_json: bool,
) -> None:
    """Print the verdict, or the links of one packet; exit with status 1 unless all is well."""
    if flow_control != AUTO:
        raise KnotlessError(
            f"--flow-control {flow_control}: the flow control of {paths[0]} is that of its switches"
        )
    imported = read_paths(paths, hosts, routes_by=routes_by)
    for line in write_switches(imported, write_switch) if write_switch is not None else ():
        say(line, err=True)
    if pair is not None:
        ends = (pair[0], imported.destination_called(pair[1]))
        traffic = traffic_for(imported, *ends)
        follow(traffic.state, *ends, imported.label, traffic.shown, as_json=as_json)
        return
    verdict = verdict_of_imported(imported)
    if draw is not None:
        draw_cycle(imported.fabric, imported.channels, draw, verdict.cycle)
    certificate = _certificate(imported, failures) if failures.max_failed else None
    remedies = None
    if failures.remedies or failures.export is not None:
        unsafe = verdict.cycle or (certificate is not None and certificate.acyclic is not True)
        remedies = proven_remedies(imported, verdict, certificate) if unsafe else []
        if failures.export is not None:
            for line in write_remedies(remedies, failures.export):
                if not as_json:
                    say(line, err=True)
    if sarif is not None:
        write_sarif(sarif, verdict, certificate, paths)
    options = [text for pattern in hosts for text in ("--hosts", pattern)]
    options += [] if routes_by is None else ["--routes", routes_by]
    print_verdict(
        verdict,
        [*paths, *options],
        _figures(verdict),
        _lines(verdict),
        certificate=certificate,
        remedies=remedies,
        as_json=as_json,
    )


def _certificate(imported: AnyFabric, options: FailureOptions) -> Certificate:
    react = options.react or default_reaction(imported)
    if react == "engine":
        return engine_certificate(imported.fabric, options)
    if isinstance(imported, RulesFabric):
        if react != "static":
            raise KnotlessError(f"--react {react}: for OpenFlow rules, static or engine")
        return certified(RulesModel.of_imported(imported), options)
    return certified(TablesModel(imported, react), options)


def _figures(verdict: ImportedVerdict) -> dict[str, object]:
    values = verdict.as_json()
    for key in (
        *("fabric", "problems", "witnesses", "missing", "notes", "ignored", "vcs"),
        *("losses", "assumes", "unread", "not_read"),
    ):
        values.pop(key)
    values["acyclic"] = "unknown" if verdict.acyclic is None else verdict.acyclic
    for vc, acyclic in verdict.vcs.items():
        values[f"virtual channel {vc}"] = "safe" if acyclic else "has a cycle"
    return values


def _lines(verdict: ImportedVerdict) -> Iterator[str]:
    yield from verdict.problems
    yield from (f"note: {line}" for line in verdict.notes[:MOST_LINES])
    if len(verdict.missing) > SHOWN_MISSING:
        yield from (f"missing: {line}" for line in verdict.missing[:MOST_LINES])
    by_reason: dict[str, list[str]] = {}
    for file in verdict.not_read:
        why = file["reason"] + (f" (instead: {file['command']})" if file["command"] else "")
        by_reason.setdefault(why, []).append(file["file"])
    for why, files in [*by_reason.items()][:MOST_LINES]:
        yield f"not read: {listed(files, 5)}: {why}"
