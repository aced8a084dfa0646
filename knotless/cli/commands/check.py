"""``knotless check``: whether rules, ours or others', deliver everything and can deadlock."""

from __future__ import annotations

from dataclasses import replace

import click

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import AUTO
from knotless.base.switch_settings import SwitchFile
from knotless.cli.commands._failures import (
    FailureOptions,
    certified,
    engine_certificate,
    failure_options,
)
from knotless.cli.commands._freeze import freeze_of, freeze_options, refuse_trace_alone
from knotless.cli.commands._imported import check_imported
from knotless.cli.commands._options import json_option, name_option
from knotless.cli.commands._plan_options import flow_control_option
from knotless.cli.commands._sarif import sarif_option, write_sarif
from knotless.cli.commands._switch_settings import judged_switch_options
from knotless.cli.commands._trace import follow
from knotless.cli.commands._verdict import draw_cycle, print_verdict
from knotless.cli.commands._write_switch import write_switch_option
from knotless.emulation.cuts import Cables
from knotless.emulation.names import names_of
from knotless.emulation.ovs_dump import live_multicast, read_live
from knotless.emulation.state import stopped_switches
from knotless.forwarding.openflow.directory import (
    is_dir_of_rules,
    read_dir,
    read_multicast,
    read_tags,
)
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.importers.paths import COMPUTED
from knotless.verification.check import verdict_of
from knotless.verification.cut_links import with_losses
from knotless.verification.failure_models import RulesModel
from knotless.verification.switch_verdict import verdict_with_switches


@click.command(name="check")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--live", is_flag=True, help="Check the rules in the switches of a running fabric.")
@name_option
@click.option(
    "--pair",
    type=(str, str),
    metavar="FROM TO",
    help="Trace one packet instead, link by link; TO is a host, 'all' or multicast:N.",
)
@click.option(
    "--hosts",
    multiple=True,
    metavar="PATTERN",
    help="Neighbours by LLDP with such names, for example 'gpu-*', are hosts; may be repeated.",
)
@click.option("--draw", metavar="F.svg", help="Draw the fabric, a cycle in red, to this file.")
@click.option(
    "--routes",
    type=click.Choice(COMPUTED),
    help="Take routes from the configurations of routers, not from lists of routes: as BGP computes"
    " them, or only static ones.",
)
@flow_control_option
@judged_switch_options
@write_switch_option
@sarif_option
@freeze_options
@failure_options
@json_option
def command(
    paths: tuple[str, ...],
    live: bool,
    name: str,
    pair: tuple[str, str] | None,
    hosts: tuple[str, ...],
    draw: str | None,
    routes: str | None,
    flow_control: str,
    switch_settings: SwitchFile | None,
    packet_bytes: int,
    write_switch: str | None,
    sarif: str | None,
    freezing: bool,
    write_trace: str | None,
    failures: int,
    react: str | None,
    engine: str,
    seed: int,
    samples: int,
    remedies: bool,
    export: str | None,
    as_json: bool,
) -> None:
    """Read the state of switches from each PATH and trace all packets.

    PATH is a directory of rules (as written by knotless flows), or files and folders with the
    state of a real fabric: see docs/check-your-fabric.md. The exit status is 0 if all is delivered,
    there is no cycle of channel dependencies, and lossless packets cannot be lost, else 1. Each
    step of a cycle is shown with a packet that takes it. With --live, packets sent to a link that
    is cut now are lost.

    Example: knotless check rules --flow-control pause

    Example: knotless check rules --pair h1 h3

    Example: knotless check ibnetdiscover.txt opensm-lfts.dump opensm-sl2vl.dump

    Example: knotless check my-fabric --hosts 'gpu-*' --hosts 'storage-*'

    Example: knotless check my-fabric --failures 1 --react bgp

    Example: knotless check my-configurations --routes bgp

    Example: knotless check my-fabric --remedies --export patches

    Example: knotless check rules --switch switch.yaml

    Example: knotless check my-fabric --write-switch switch.yaml

    Example: knotless check rules --freeze --write-trace freeze.csv

    Example: knotless check my-fabric --sarif findings.sarif
    """
    refuse_trace_alone(write_trace, freezing=freezing)
    tried = FailureOptions(failures, react, engine, seed, samples, remedies, export)
    if live == bool(paths):
        raise KnotlessError("check needs either a directory of rules or other files, or --live")
    directory = paths[0] if paths else None
    if directory is not None and not (len(paths) == 1 and is_dir_of_rules(directory)):
        if switch_settings is not None:
            raise KnotlessError(f"--switch: {directory} has the settings of its switches itself")
        if write_trace is not None:
            raise KnotlessError("--write-trace is for fabrics of ours, which can send a trace")
        check_imported(
            paths,
            pair,
            draw,
            flow_control,
            hosts=hosts,
            routes_by=routes,
            failures=tried,
            write_switch=write_switch,
            sarif=sarif,
            freezing=freezing,
            as_json=as_json,
        )
        return
    if hosts:
        raise KnotlessError("--hosts is for the files of real fabrics; ours names its hosts")
    if routes is not None:
        raise KnotlessError("--routes is for the files of real fabrics; ours have rules")
    if write_switch is not None:
        raise KnotlessError("--write-switch is for the files of real fabrics; ours have none")
    if remedies or export:
        raise KnotlessError("--remedies are for the files of real fabrics; plan again for ours")
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
    if live:
        cut, links = Cables.of_running(names_of(name)).cut_links()
        if links:
            effective = cut.rules_in_effect(fabric, rules)
            losing = verdict_of(state_of_rules(fabric, effective, groups, tags), control)
            verdict = with_losses(verdict, losing, links)
        if verdict.failed and (stopped := stopped_switches(names_of(name))):
            problems = [f"stopped: {', '.join(sorted(stopped))}", *verdict.problems]
            verdict = replace(verdict, problems=problems)
    certificate = None
    if tried.max_failed and tried.react == "engine":
        certificate = engine_certificate(fabric, tried)
    elif tried.max_failed:
        if tried.react not in (None, "static"):
            raise KnotlessError(f"--react {tried.react}: for OpenFlow rules, static or engine")
        model = RulesModel(fabric, rules, verdict.flow_control, groups=groups, tags=tags)
        certificate = certified(model, tried)
    if draw is not None:
        draw_cycle(fabric, state.channels, draw, verdict.cycle)
    hidden = {"fabric", "problems", "witnesses", "assumes", "losses", "notes", "blocked"}
    figures = {key: value for key, value in verdict.as_json().items() if key not in hidden}
    what = ["--live", "--name", name] if directory is None else [directory]
    lines = [*verdict.problems, *verdict.losses, *(f"note: {line}" for line in verdict.notes)]
    if sarif is not None:
        write_sarif(sarif, verdict, certificate, [f"fabric:{name}" if live else what[0]])
    found = None
    if freezing:
        found = freeze_of(state, verdict.flow_control, switch_settings, write_trace)
    print_verdict(
        verdict, what, figures, lines, certificate=certificate, freeze=found, as_json=as_json
    )
