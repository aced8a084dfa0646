"""``knotless status``: the running fabrics and their state."""

from __future__ import annotations

import sys
from typing import Any

import click

from knotless.base.flow_control import FlowControl, verdict_text
from knotless.cli import complete
from knotless.cli.options import json_option, lower_case
from knotless.cli.output import say, say_json
from knotless.emulation.datapath import text_of
from knotless.emulation.lines import fault_text
from knotless.emulation.names import DEFAULT_NAME, names_of, running_names
from knotless.emulation.report import pace, report
from knotless.emulation.runtime import require_root
from knotless.routing.choices.requested import KINDS
from knotless.routing.choices.single_path import SinglePath

EXAMPLE = """\b
Example: knotless status
         knotless status --name default --json
"""
_SHOWN = 8


@click.command("status", epilog=EXAMPLE)
@click.option(
    "--name",
    callback=lower_case,
    help="Only the fabric with this name.",
    shell_complete=complete.names,
)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """Show the running fabrics, whether their switches have their rules, and problems.

    The exit status is 1 if one of them has a problem, or if the fabric that is named does not run.
    """
    require_root()
    names = [name] if name is not None else running_names()
    reports = [one for one in (report(names_of(each)) for each in names) if one is not None]
    if as_json:
        say_json({"fabrics": reports})
    elif not reports:
        say(f"no fabric {name!r} is running" if name else "nothing is running")
    for one in [] if as_json else reports:
        _print_status(one)
    if any(one["problems"] for one in reports) or (name is not None and not reports):
        sys.exit(1)


def _print_status(one: dict[str, Any]) -> None:
    """Print the status of one fabric."""
    say(f"{one['name']}: {one['fabric']}, {one['phase']}, {text_of(one)}")
    parts = (
        f"{role} {part['pid']}{' (started by hand)' if part.get('by_hand') else ''}"
        for role, part in one["parts"].items()
        if part["alive"]
    )
    say(f"  runs: {', '.join(parts) or 'nothing'}")
    if controller := one["controller"]:
        switches = controller.get("switches", {})
        ready = "ready" if controller.get("ready") else "not ready"
        rules = sum(switch.get("rules") or 0 for switch in switches.values())
        kind = KINDS.get(controller.get("request", {}).get("multipath"), SinglePath)
        say(
            f"  controller: {ready}, engine {controller.get('engine')}{kind.mark}, "
            f"{rules} rules on {len(switches)} switches, {one['controller_url']}/status"
        )
        if verdict := controller.get("check"):
            control = FlowControl(verdict["flow_control"])
            say(f"  plan: {verdict_text(control, verdict['cycle'])}")
    if emulator := one["emulator"]:
        say(
            f"  emulator: {emulator['frames_in_network']} frames in the network, "
            f"{pace(emulator)}, "
            f"{'deadlocked' if emulator['deadlock'] else 'no deadlock'}"
        )
        for storm in emulator["storms"]:
            say(
                f"  watchdog: {storm['channel']}: {storm['detected']} storms detected, "
                f"{storm['restored']} restored, {storm['alerts']} only reported, "
                f"{storm['dropped_frames']} frames dropped"
            )
        for line in emulator["faulty_lines"]:
            say(f"  line: {fault_text(line)}")
    for note in one["notes"]:
        say(f"  {note}")
    if outside := one["real_time_programs"]:
        more = f" and {len(outside) - _SHOWN} more" if len(outside) > _SHOWN else ""
        shown = ", ".join(outside[:_SHOWN])
        say(f"  note: {len(outside)} programs on hosts have no virtual time: {shown}{more}")
    if one["phase"] == "ready":
        which = "" if one["name"] == DEFAULT_NAME else f" --name {one['name']}"
        say(f"  use: knotless attach{which} (its prompt), knotless exec{which} HOST PROGRAM")
    for problem in one["problems"]:
        say(f"  problem: {problem}")
    for advice in one["advice"]:
        say(f"  to do: {advice['do']}: {advice['command']}")
