"""``knotless check`` of OpenFlow rules of ours: of a directory, or of a running fabric."""

from __future__ import annotations

from dataclasses import replace

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import AUTO
from knotless.base.switch_settings import SwitchFile
from knotless.cli.answer import Several
from knotless.cli.commands._failure_options import FailureOptions
from knotless.cli.commands._failures import certified, engine_certificate, report_of
from knotless.cli.commands._freeze import freeze_of
from knotless.cli.commands._print_verdict import print_verdict
from knotless.cli.commands._sarif import write_sarif
from knotless.cli.commands._trace import follow
from knotless.cli.commands._verdict import draw_cycle
from knotless.emulation.cuts import Cables
from knotless.emulation.names import names_of
from knotless.emulation.ovs_dump import live_multicast, read_live
from knotless.emulation.state import stopped_switches
from knotless.forwarding.openflow.directory import read_dir, read_multicast, read_tags
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.verification.check import verdict_of
from knotless.verification.cut_links import with_losses
from knotless.verification.failure_models import RulesModel
from knotless.verification.switch_verdict import verdict_with_switches


def check_rules(
    directory: str | None,
    name: str,
    pair: tuple[str, str] | None,
    draw: str | None,
    flow_control: str,
    *,
    switch_settings: SwitchFile | None,
    packet_bytes: int,
    sarif: str | None,
    freezing: bool,
    write_trace: str | None,
    failures: FailureOptions,
    details: bool,
    as_json: bool,
) -> None:
    """Print the verdict on a directory of rules, or on the running fabric called ``name``.

    The status of the process is 1 unless all is well. With ``pair``, print the links of one packet.
    """
    in_use: str = AUTO
    if directory is None:
        fabric, rules, in_use = read_live(name)
        groups = live_multicast(fabric, name)
        tags = read_tags(fabric, names_of(name).directory)
    else:
        fabric, rules = read_dir(directory)
        groups = read_multicast(fabric, directory)
        tags = read_tags(fabric, directory)
    state = state_of_rules(fabric, rules, groups, tags)
    if pair is not None:
        follow(state, *pair, as_json=as_json)
        return
    control = in_use if flow_control == AUTO else flow_control
    verdict = verdict_of(state, control)
    if switch_settings is not None:
        verdict = verdict_with_switches(state, switch_settings, control, packet_bytes=packet_bytes)
    if directory is None:
        cut, links = Cables.of_running(names_of(name)).cut_links()
        if links:
            effective = cut.rules_in_effect(fabric, rules)
            losing = verdict_of(state_of_rules(fabric, effective, groups, tags), control)
            verdict = with_losses(verdict, losing, links)
        if verdict.failed and (stopped := stopped_switches(names_of(name))):
            problems = [f"stopped: {', '.join(sorted(stopped))}", *verdict.problems]
            verdict = replace(verdict, problems=problems)
    certificate = None
    if failures.max_failed and failures.react == "engine":
        certificate = report_of(engine_certificate(fabric, failures))
    elif failures.max_failed:
        if failures.react not in (None, "static"):
            raise KnotlessError(f"--react {failures.react}: for OpenFlow rules, static or engine")
        model = RulesModel(fabric, rules, verdict.flow_control, groups=groups, tags=tags)
        certificate = report_of(certified(model, failures))
    if draw is not None:
        draw_cycle(fabric, state.channels, draw, verdict.cycle)
    hidden = {"fabric", "problems", "witnesses", "assumes", "losses", "notes", "blocked"}
    figures = {key: value for key, value in verdict.as_json().items() if key not in hidden}
    what = ["--live", "--name", name] if directory is None else [directory]
    notes = Several([f"note: {line}" for line in verdict.notes], "notes")
    if sarif is not None:
        write_sarif(
            sarif, verdict, certificate, [f"fabric:{name}" if directory is None else what[0]]
        )
    found = None
    if freezing:
        found = freeze_of(state, verdict.flow_control, switch_settings, write_trace)
    print_verdict(
        verdict,
        what,
        figures,
        [notes],
        certificate=certificate,
        freeze=found,
        details=details,
        as_json=as_json,
    )
