"""``knotless check`` of an imported fabric: one that is read from files of its switches."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from knotless.base.counting import counted
from knotless.base.errors import KnotlessError
from knotless.base.files import folder_for_files, write_all
from knotless.base.flow_control import AUTO
from knotless.base.printable import listed
from knotless.cli.answer import Answer, Headline, print_answer
from knotless.cli.commands.check.answer import Extras, draw_cycle, print_imported
from knotless.cli.commands.check.failures import (
    engine_failure_table,
    evaluate_failures,
    proven_remedies,
    report_of,
)
from knotless.cli.commands.check.options import CheckOptions, FailureOptions, Source
from knotless.cli.commands.check.proof import write_imported_proof
from knotless.cli.commands.check.since import what_a_state_is_for
from knotless.cli.commands.check.trace import print_pair
from knotless.cli.options import print_json
from knotless.cli.output import say
from knotless.cli.progress import Bar
from knotless.importers.fabric import AnyFabric, TableFabric
from knotless.importers.listing import listed_files
from knotless.importers.manifest import listed_now, records_of
from knotless.importers.paths import read_paths
from knotless.verification.check_state import write_state
from knotless.verification.failure_models import model_of_imported
from knotless.verification.failures import FailureTable
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.pair_paths import followed_in
from knotless.verification.remedies import Remedy
from knotless.verification.route_sections import sections_of

if TYPE_CHECKING:
    from knotless.traffic.endpoints import EndpointModel


def check_imported(options: CheckOptions) -> None:
    """Print the verdict, or what is asked instead; exit with status 1 unless all is well."""
    source, query, output = options.source, options.query, options.output
    if source.flow_control != AUTO:
        raise KnotlessError(
            f"--flow-control {source.flow_control}: the flow control of {source.paths[0]} is that"
            " of its switches"
        )
    begun_ns = time.time_ns()
    seen = [] if options.states.write_state is None else listed_now(source.paths)
    imported = _read(source)
    if query.explain is not None:
        _print_explanation(imported, query.explain, as_json=output.as_json)
        return
    if output.write_switch is not None:
        for line in _write_switches(imported, output.write_switch):
            say(line, err=True)
    if query.pair is not None:
        print_pair(followed_in(imported, *query.pair), as_json=output.as_json)
    verdict = _verdict(imported, options.endpoints)
    if output.draw is not None:
        draw_cycle(imported.fabric, imported.channels, output.draw, verdict.cycle)
    table = _failure_table(imported, options.failures)
    remedies = _remedies(imported, verdict, table, options)
    report = None if table is None else report_of(table)
    if options.states.write_state is not None:
        if table is not None and len(table.verdicts) < table.planned:
            raise KnotlessError("--write-state: not all failures were tried")
        write_state(
            options.states.write_state,
            what_a_state_is_for(options),
            verdict,
            report,
            records_of(seen, begun_ns),
            sections_of(imported, verdict),
            options.states.key,
        )
    freeze = None
    if options.freeze.freezing:
        from knotless.simulation.imported_freezing import find_freeze_of_imported  # loads much

        freeze = find_freeze_of_imported(imported, verdict)
    file = output.proof
    proof = None if file is None else write_imported_proof(file, imported, verdict, source.paths)
    print_imported(verdict, source, Extras(report, remedies, freeze, proof), output)


def _verdict(imported: AnyFabric, endpoints: EndpointModel | None) -> ImportedVerdict:
    if endpoints is None:
        return verdict_of_imported(imported)
    from knotless.verification.imported_endpoints import verdict_with_hosts  # loads pydantic

    return verdict_with_hosts(imported, endpoints)


def _read(source: Source) -> AnyFabric:
    """Return the fabric of the files; of a folder with many, show how many are read."""
    files = sum(1 for _ in listed_files(source.paths))
    total = files if files > 1 else None  # an archive has more
    with Bar("reading files", total, transient=True, patient=True) as bar:

        def read_one(number: int) -> None:
            bar.update(completed=number)

        return read_paths(source.paths, source.hosts, routes_by=source.routes, progress=read_one)


def _print_explanation(imported: AnyFabric, port: str, *, as_json: bool) -> None:
    """Print what a port of a router leads to."""
    if imported.explain is None:
        raise KnotlessError("--explain: only ports of routers are explained, these are none")
    text = imported.explain(port)
    if as_json:
        print_json({"port": port, "text": text})
    else:
        print_answer(Answer(Headline(port, text.removeprefix(f"{port}: "))))


def _failure_table(imported: AnyFabric, options: FailureOptions) -> FailureTable | None:
    """Return the failure table, or None if there are none."""
    if not options.max_failed:
        return None
    if options.react == "engine":
        return engine_failure_table(imported.fabric, options)
    return evaluate_failures(model_of_imported(imported, options.react), options)


def _remedies(
    imported: AnyFabric,
    verdict: ImportedVerdict,
    table: FailureTable | None,
    options: CheckOptions,
) -> list[Remedy] | None:
    """Return the remedies, if they are asked for, and write their files."""
    folder = options.failures.export
    if not options.failures.remedies and folder is None:
        return None
    unsafe = verdict.cycle or (table is not None and table.acyclic is not True)
    remedies = proven_remedies(imported, verdict, table) if unsafe else []
    if folder is not None:
        for line in _write_remedies(remedies, folder):
            if not options.output.as_json:
                say(line, err=True)
    return remedies


def _write_remedies(remedies: Sequence[Remedy], folder: str) -> Iterator[str]:
    """Write the files of each remedy to a folder of its own, ``NUMBER-KIND``.

    Yields a line for each folder; raises KnotlessError if a file cannot be written.
    """
    for number, remedy in enumerate(remedies, 1):
        if not remedy.files:
            continue
        remedy_folder = Path(folder, f"{number}-{remedy.kind}")
        with folder_for_files(remedy_folder):
            write_all({remedy_folder / name: text for name, text in remedy.files.items()})
        yield f"wrote {counted(len(remedy.files), 'files')} to {remedy_folder}"


def _write_switches(imported: AnyFabric, path: str) -> Iterator[str]:
    """Write the settings of an imported fabric; yield lines for people.

    Raises KnotlessError if no switch has settings, or the file cannot be written.
    """
    # These load pydantic.
    from knotless.base import switch_settings
    from knotless.importers.switch_settings import ReadSettings, file_of

    settings = imported.switch_settings() if isinstance(imported, TableFabric) else {}
    with_settings = [name for name, read in settings.items() if read != ReadSettings()]
    if not with_settings:
        raise KnotlessError(
            f"--write-switch: no switch of {imported.fabric.name} has tables of SONiC with settings"
            " (BUFFER_POOL, BUFFER_PG, SCHEDULER, PFC_WD, PORT_QOS_MAP)"
        )
    file, unknown = file_of(settings)
    switch_settings.write(Path(path), file, unknown)
    yield f"settings of {listed(with_settings, 3)} written to {path}"
    if unknown:
        yield f"its comments list {counted(len(unknown), 'facts')} that it leaves out: not known"
