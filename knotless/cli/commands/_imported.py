"""``knotless check`` of an imported fabric: one that is read from files of its switches."""

from __future__ import annotations

import time
from collections.abc import Sequence

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import AUTO
from knotless.cli.commands._failure_options import FailureOptions
from knotless.cli.commands._failures import certified, engine_certificate, report_of
from knotless.cli.commands._print_imported import print_imported
from knotless.cli.commands._remedies import proven_remedies, write_remedies
from knotless.cli.commands._since import state_options
from knotless.cli.commands._trace import follow
from knotless.cli.commands._verdict import draw_cycle
from knotless.cli.commands._write_switch import write_switches
from knotless.cli.options import print_json
from knotless.cli.output import say
from knotless.importers.fabric import AnyFabric, RulesFabric
from knotless.importers.manifest import listed_now, records_of
from knotless.importers.paths import read_paths
from knotless.importers.reactions import default_reaction
from knotless.verification.check_state import write_state as write
from knotless.verification.failure_models import RulesModel, TablesModel
from knotless.verification.failures import Certificate
from knotless.verification.imported import traffic_for, verdict_of_imported
from knotless.verification.route_sections import sections_of


def check_imported(
    paths: Sequence[str],
    pair: tuple[str, str] | None,
    draw: str | None,
    flow_control: str,
    *,
    explain: str | None = None,
    hosts: Sequence[str] = (),
    routes_by: str | None = None,
    failures: FailureOptions,
    write_switch: str | None = None,
    write_state: str | None = None,
    sarif: str | None = None,
    freezing: bool = False,
    details: bool = False,
    as_json: bool,
) -> None:
    """Print the verdict, or the links of one packet; exit with status 1 unless all is well."""
    if flow_control != AUTO:
        raise KnotlessError(
            f"--flow-control {flow_control}: the flow control of {paths[0]} is that of its switches"
        )
    begun, seen = time.time_ns(), [] if write_state is None else listed_now(paths)
    imported = read_paths(paths, hosts, routes_by=routes_by)
    if explain is not None:
        if imported.explain is None:
            raise KnotlessError("--explain: only ports of routers are explained, these are none")
        text = imported.explain(explain)
        if as_json:
            print_json({"port": explain, "text": text})
        else:
            say(text)
        return
    for line in write_switches(imported, write_switch) if write_switch is not None else ():
        say(line, err=True)
    if pair is not None:
        ends = (pair[0], imported.destination_called(pair[1]))
        traffic = traffic_for(imported, *ends)
        follow(
            traffic.state,
            *ends,
            imported.label,
            traffic.shown,
            imported.ends_at,
            as_json=as_json,
        )
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
    report = None if certificate is None else report_of(certificate)
    if write_state is not None:
        if certificate is not None and len(certificate.verdicts) < certificate.planned:
            raise KnotlessError("--write-state: not all failures were tried")
        more = sections_of(imported, verdict)
        options = state_options(paths, hosts, routes_by, failures)
        write(write_state, options, verdict, report, records_of(seen, begun), more)
    freeze = None
    if freezing:
        from knotless.simulation.imported_freezing import find_freeze_of_imported  # loads much

        freeze = find_freeze_of_imported(imported, verdict)
    print_imported(
        verdict,
        paths,
        hosts,
        routes_by,
        report,
        remedies=remedies,
        freeze=freeze,
        sarif=sarif,
        details=details,
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
