"""``knotless check``: whether rules, ours or others', deliver everything and can deadlock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from knotless.base.computed_routes import COMPUTED
from knotless.base.errors import KnotlessError
from knotless.cli.commands._failure_options import FailureOptions, failure_options
from knotless.cli.commands._flow_control import flow_control_option
from knotless.cli.commands._freeze import freeze_options, refuse_trace_alone
from knotless.cli.commands._sarif import sarif_option
from knotless.cli.commands._since import SinceOptions, print_unchanged, since_options
from knotless.cli.commands._switch_settings import judged_switch_options
from knotless.cli.commands._write_switch import write_switch_option
from knotless.cli.options import details_option, json_option, name_option

if TYPE_CHECKING:
    from knotless.base.switch_settings import SwitchFile


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
    "--explain",
    metavar="SWITCH:PORT",
    help="Print instead what a port of a router leads to, and which file says so.",
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
@since_options
@details_option
@json_option
def command(
    paths: tuple[str, ...],
    live: bool,
    name: str,
    pair: tuple[str, str] | None,
    explain: str | None,
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
    write_state: str | None,
    since: str | None,
    rehash: bool,
    details: bool,
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

    Example: knotless check my-fabric --explain leaf1:Ethernet0

    Example: knotless check my-fabric --failures 1 --react bgp

    Example: knotless check my-configurations --routes bgp

    Example: knotless check my-fabric --remedies --export patches

    Example: knotless check rules --switch switch.yaml

    Example: knotless check my-fabric --write-switch switch.yaml

    Example: knotless check rules --freeze --write-trace freeze.csv

    Example: knotless check my-fabric --sarif findings.sarif

    Example: knotless check my-fabric --write-state fabric.state

    Example: knotless check my-fabric --since fabric.state
    """
    refuse_trace_alone(write_trace, freezing=freezing)
    tried = FailureOptions(failures, react, engine, seed, samples, remedies, export)
    if live == bool(paths):
        raise KnotlessError("check needs either a directory of rules or other files, or --live")
    reuse = SinceOptions(write_state, since, rehash=rehash)
    reuse.refuse_with(
        {
            "--live": live,
            "--pair": pair,
            "--explain": explain,
            "--draw": draw,
            "--switch": switch_settings,
            "--write-switch": write_switch,
            "--freeze": freezing,
            "--remedies": remedies,
            "--export": export,
        }
    )
    if reuse.since is not None:
        print_unchanged(
            reuse,
            paths,
            flow_control,
            hosts,
            routes,
            tried,
            sarif=sarif,
            details=details,
            as_json=as_json,
        )
    # What follows loads all of verification.
    from knotless.cli.commands._check_rules import check_rules
    from knotless.cli.commands._imported import check_imported
    from knotless.forwarding.openflow.directory import is_dir_of_rules

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
            explain=explain,
            hosts=hosts,
            routes_by=routes,
            failures=tried,
            write_switch=write_switch,
            write_state=write_state,
            sarif=sarif,
            freezing=freezing,
            details=details,
            as_json=as_json,
        )
        return
    if reuse.name is not None:
        raise KnotlessError(f"{reuse.name} is for the files of real fabrics; ours are read at once")
    if explain is not None:
        raise KnotlessError(
            "--explain is for the files of real fabrics; ours says where links lead"
        )
    if hosts:
        raise KnotlessError("--hosts is for the files of real fabrics; ours names its hosts")
    if routes is not None:
        raise KnotlessError("--routes is for the files of real fabrics; ours have rules")
    if write_switch is not None:
        raise KnotlessError("--write-switch is for the files of real fabrics; ours have none")
    if remedies or export:
        raise KnotlessError("--remedies are for the files of real fabrics; plan again for ours")
    check_rules(
        directory,
        name,
        pair,
        draw,
        flow_control,
        switch_settings=switch_settings,
        packet_bytes=packet_bytes,
        sarif=sarif,
        freezing=freezing,
        write_trace=write_trace,
        failures=tried,
        details=details,
        as_json=as_json,
    )
