"""``knotless check``: whether rules, ours or others', deliver everything and can deadlock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from knotless.cli.commands._verdict_options import (
    FreezeOptions,
    SwitchOptions,
    endpoints_option,
    freeze_options,
    judged_switch_options,
)
from knotless.cli.commands.check.options import (
    CheckOptions,
    FailureOptions,
    Output,
    Query,
    Source,
    StateOptions,
    failure_options,
    output_options,
    query_options,
    source_options,
    state_options,
)
from knotless.cli.commands.check.since import print_unchanged
from knotless.cli.help import OTHERS, Command, under

if TYPE_CHECKING:
    from knotless.traffic.endpoints import EndpointModel


@click.command(name="check", cls=Command)
@under(
    "What is read", source_options, ["live", "name", "hosts", "routes", "patches", "flow_control"]
)
@under("Packets and ports", query_options)
@under("Switches", judged_switch_options, ["switch_settings"])
@under("Switches", endpoints_option, ["endpoints"])
@under("Traffic", freeze_options, ["freezing"])
@under("Failures and remedies", failure_options, ["max_failed", "react", "remedies", "export"])
@under("Later checks", state_options, ["write_state", "since", "watch"])
@under(OTHERS, output_options, ["draw", "sarif", "proof", "details", "as_json"])
def command(
    source: Source,
    query: Query,
    switches: SwitchOptions,
    endpoints: EndpointModel | None,
    freeze: FreezeOptions,
    failures: FailureOptions,
    states: StateOptions,
    output: Output,
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

    Example: knotless check my-fabric --patch leaf0=change.json

    Example: knotless check my-fabric --remedies --export patches

    Example: knotless check rules --switch switch.yaml

    Example: knotless check rules --endpoints request-reply

    Example: knotless check my-fabric --write-switch switch.yaml

    Example: knotless check rules --freeze --write-trace freeze.csv

    Example: knotless check my-fabric --sarif findings.sarif

    Example: knotless check my-fabric --junit check.xml --accept accepted.yaml --ignore loss

    Example: knotless check rules --proof rules.proof && knotless verify rules rules.proof

    Example: knotless check my-fabric --write-state fabric.state

    Example: knotless check my-fabric --since fabric.state

    Example: knotless check my-fabric --watch
    """
    options = CheckOptions(source, query, switches, endpoints, freeze, failures, states, output)
    options.refuse_contradictions()
    if states.since is not None and not (Path(source.paths[0]) / "fabric.json").is_file():
        print_unchanged(options)
    # What follows loads all of verification.
    from knotless.cli.commands.check.imported import check_imported
    from knotless.cli.commands.check.rules import check_rules
    from knotless.forwarding.openflow.directory import is_dir_of_rules

    if source.live or (len(source.paths) == 1 and is_dir_of_rules(source.paths[0])):
        options.refuse_for_rules()
        check_rules(options)
    else:
        options.refuse_for_files()
        if source.patches:
            from knotless.cli.commands.check.patches import check_patches

            check_patches(options)
        if states.watch:
            from knotless.cli.commands.check.watch import watch

            watch(source, output)
        check_imported(options)
