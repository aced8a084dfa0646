"""``knotless status``: the running fabrics and their state."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from knotless.base.counting import counted
from knotless.base.flow_control import FlowControl, verdict_words
from knotless.base.printable import listed
from knotless.cli import complete
from knotless.cli.answer import (
    Answer,
    Figure,
    Group,
    Headline,
    Hint,
    Reason,
    Several,
    Tone,
    print_answer,
)
from knotless.cli.commands._verdict_answer import engine_name
from knotless.cli.options import details_option, json_option, lower_case, name_words
from knotless.cli.output import say_json
from knotless.emulation.datapath import text_of
from knotless.emulation.lines import fault_text
from knotless.emulation.names import names_of, running_names
from knotless.emulation.report import pace, report
from knotless.emulation.requirements import require_fabrics
from knotless.emulation.state import no_fabric
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
@details_option
@json_option
def command(name: str | None, details: bool, as_json: bool) -> None:
    """Show the running fabrics, whether their switches have their rules, and problems.

    The exit status is 1 if one of them has a problem, 2 if the fabric that is named does not run.
    """
    reports = _reports(name)
    if not reports:
        require_fabrics()
    if as_json:
        say_json({"fabrics": reports})
    if name is not None and not reports:
        raise no_fabric(name)
    if not reports and not as_json:
        print_answer(Answer(Headline("all fabrics", "not running")))
    for one in [] if as_json else reports:
        print_answer(status_answer(one), details=details)
    if any(one["problems"] for one in reports):
        sys.exit(1)


def _reports(name: str | None) -> list[dict[str, Any]]:
    """Return the reports of the fabric of this name, or of all; none if the user may see none."""
    try:
        names = [name] if name is not None else running_names()
        return [one for one in (report(names_of(each)) for each in names) if one is not None]
    except PermissionError:
        return []


def status_answer(one: Mapping[str, Any]) -> Answer:
    """Return what to say about a fabric, of its :func:`knotless.emulation.report.report`."""
    emulator = one["emulator"] or {}
    which = name_words(one["name"])
    at_the_prompt = Hint("use it", ["knotless", "attach", *which])
    return Answer(
        _headline(one),
        why=[
            Several([f"problem: {line}" for line in one["problems"]], "problems"),
            *(f"to do: {advice['do']}: {advice['command']}" for advice in one["advice"]),
        ],
        figures=[*_figures(one, emulator)],
        remarks=[*_remarks(one, emulator)],
        hints=[at_the_prompt] if one["phase"] == "ready" else [],
        details=[*_details(one, emulator)],
    )


def _headline(one: Mapping[str, Any]) -> Headline:
    controller = one["controller"] or {}
    kind = KINDS.get(controller.get("request", {}).get("multipath"), SinglePath)
    engine = controller.get("engine")
    routed = "" if engine is None else f" with {engine_name(engine)}{kind.mark}"
    subject = f"{one['fabric']}{routed} as {one['name']!r}"
    verdict = controller.get("check")
    plan = ""
    if verdict:
        words = verdict_words(FlowControl(verdict["flow_control"]), safe=not verdict["cycle"])
        plan = f", {' '.join(words)}"
    if (one["emulator"] or {}).get("deadlock"):
        return Headline(subject, "deadlocked", tone=Tone.BAD)
    if one["problems"]:
        count = len(one["problems"])
        word = f"{one['phase']}, with {'a problem' if count == 1 else f'{count} problems'}"
        return Headline(subject, word, plan, Tone.BAD)
    if one["phase"] != "ready":
        return Headline(subject, one["phase"], plan, Tone.OPEN)
    return Headline(
        subject, "ready", plan, Tone.OPEN if verdict and verdict["cycle"] else Tone.GOOD
    )


def _figures(one: Mapping[str, Any], emulator: Mapping[str, Any]) -> Iterator[Figure]:
    switches = (one["controller"] or {}).get("switches", {})
    rules = sum(switch.get("rules") or 0 for switch in switches.values())
    yield Figure("rules", rules, where=f"on {counted(len(switches), 'switches')}")
    if not emulator:
        return
    yield Figure("frames", emulator["frames_in_network"], "under way")
    stretch, now = emulator["stretch"], emulator["stretch_now"]
    if stretch is None:
        yield Figure("pace", "virtual time stands still")
    else:
        recent = "" if now is None else f", {now:.2f} s now"
        yield Figure("pace", f"a virtual second takes {stretch:.2f} s{recent}")


def _remarks(one: Mapping[str, Any], emulator: Mapping[str, Any]) -> Iterator[Reason]:
    for storm in emulator.get("storms", ()):
        yield (
            f"watchdog: {storm['channel']}: {counted(storm['detected'], 'storms')} detected,"
            f" {storm['restored']} restored, {storm['alerts']} only reported,"
            f" {counted(storm['dropped_frames'], 'frames')} dropped"
        )
    faulty = [f"line: {fault_text(line)}" for line in emulator.get("faulty_lines", ())]
    yield Several(faulty, "lines with faults")
    yield Several(one["notes"], "notes")
    if outside := one["real_time_programs"]:
        shown = listed(outside, _SHOWN)
        programs = counted(len(outside), "programs")
        yield f"note: {programs} on hosts without virtual time: {shown}"
    for role, part in one["parts"].items():
        if part["alive"] and part.get("by_hand"):
            yield f"{role} {part['pid']} (started by hand)"


def _details(one: Mapping[str, Any], emulator: Mapping[str, Any]) -> Iterator[Group]:
    parts = {role: part["pid"] for role, part in one["parts"].items() if part["alive"]}
    yield Group("processes", parts)
    values = {"datapath": text_of(one)}
    if one["controller"]:
        values["controller"] = f"{one['controller_url']}/status"
    if emulator:
        values["virtual time"] = pace(emulator)
    yield Group("fabric", values)
