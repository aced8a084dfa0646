"""``knotless check``: whether rules, ours or others', deliver everything and can deadlock."""

from __future__ import annotations

import sys

import click

from common.errors import KnotlessError
from common.flow_control import AUTO, accepted
from emulation.names import names_of
from emulation.ovs_dump import live_multicast, read_live
from forwarding.openflow.directory import read_dir, read_multicast, read_tags
from forwarding.openflow.reader import state_of_rules
from forwarding.state import ForwardingState, Hop
from knotless.commands._options import json_option, print_json, print_table
from knotless.commands._plan_options import flow_control_option
from verification.check import Verdict, verdict_of
from verification.dependencies import Witness


@click.command(name="check")
@click.argument("directory", required=False)
@click.option("--live", is_flag=True, help="Check the rules in the switches of a running fabric.")
@click.option("--name", default="default", show_default=True, help="The running fabric's name.")
@click.option(
    "--pair",
    type=(str, str),
    metavar="FROM TO",
    help="Trace one packet instead, link by link; TO is a host, 'all' or multicast:N.",
)
@flow_control_option
@json_option
def command(
    directory: str | None,
    live: bool,
    name: str,
    pair: tuple[str, str] | None,
    flow_control: str,
    as_json: bool,
) -> None:
    """Read the rules in DIRECTORY (as written by knotless flows) and trace all packets.

    The exit status is 0 if all is delivered and there is no cycle of channel dependencies, else 1.
    Each step of a cycle is shown with a packet that takes it.

    Example: knotless check rules --flow-control pause

    Example: knotless check rules --pair h1 h3
    """
    if live == (directory is not None):
        raise KnotlessError("check needs either a directory of rules or --live")
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
        _follow(state, *pair, as_json=as_json)
        return
    chosen = str(accepted(flow_control))
    verdict = verdict_of(state, in_use if chosen == AUTO else chosen)
    where = f"--live --name {name}" if directory is None else directory
    if as_json:
        steps = [{**of.as_json(), "command": _command(where, of)} for of in verdict.witnesses]
        print_json({**verdict.as_json(), "witnesses": steps})
    else:
        _print(verdict, where)
    sys.exit(0 if verdict.good else 1)


def _command(where: str, witness: Witness) -> str:
    """Return the command that shows the links of the packet."""
    return f"knotless check {where} --pair {witness.source} {witness.destination}"


def _print(verdict: Verdict, where: str) -> None:
    values = verdict.as_json()
    for key in ("fabric", "problems", "witnesses"):
        values.pop(key)
    print_table(f"check of {verdict.fabric}", values)
    for problem in verdict.problems:
        click.echo(problem)
    for of in verdict.witnesses:
        click.echo(
            f"{of.source} to {of.destination} holds {of.held} while it waits for {of.wanted}"
            f" ({_command(where, of)})"
        )
    click.echo("not all is delivered" if verdict.failed else "all is delivered")
    click.echo(verdict.text)


def _follow(state: ForwardingState, source: str, destination: str, *, as_json: bool) -> None:
    """Print the links of one packet; exit with status 1 unless it arrives."""
    if source not in state.fabric.host_index:
        raise KnotlessError(f"--pair: {state.fabric.name} has no host {source[:40]!r}")
    number = state.destination_number(source, destination)
    if number is None:
        raise KnotlessError(
            f"--pair: {state.fabric.name} has no host {destination[:40]!r};"
            " 'all' and multicast:N (a declared group) are allowed too"
        )
    trace = state.trace_number(source, number)
    got = [state.fabric.hosts[host].name for host, _ in trace.delivered]
    links = [_link(state, hop) for hop in trace.hops]
    if as_json:
        print_json({"links": links, "delivered": got, "twice": trace.repeated})
    else:
        for link in links:
            click.echo(f"{link['link']}" + (f"  VLAN {link['vlan']}" if link["vlan"] else ""))
        click.echo(f"delivered to {', '.join(got)}" if got else "delivered to nobody")
    sys.exit(0 if got and not trace.repeated else 1)


def _link(state: ForwardingState, hop: Hop) -> dict[str, str | int]:
    """Return the name of a link on a packet's path, and the VLAN there (0: none)."""
    channels = len(state.channels)
    if hop.link < channels:
        return {"link": state.channels.name(hop.link, hop.priority), "vlan": hop.label}
    return {"link": state.fabric.hosts[hop.link - channels].name, "vlan": hop.label}
