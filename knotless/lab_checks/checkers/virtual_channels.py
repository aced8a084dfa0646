"""Lab 4: two virtual channels break a cycle if each pauses by itself (PFC), else not (PAUSE)."""

from __future__ import annotations

from collections.abc import Iterator

from knotless.base.flow_control import FlowControl
from knotless.forwarding.from_plan import state_of_plan
from knotless.lab_checks.lab import Lab, Work
from knotless.lab_checks.proofs import dependencies, wrong_cycle
from knotless.lab_checks.running import counters_of, status_of, wrong_setting
from knotless.routing.plan import make_plan
from knotless.topologies import load

SPEC = "ring,5"


def number(work: Work) -> Iterator[str]:
    """The plan of the sheet uses as many virtual channels as the answer says."""
    plan = make_plan(load(SPEC), "dor")
    if (given := work.answers.number("vcs")) != plan.vcs:
        yield work.answers.wrong("vcs", f"the plan does not use {given}: see knotless plan {SPEC}")


def change(work: Work) -> Iterator[str]:
    """A packet changes its virtual channel where the answer says."""
    state = state_of_plan(make_plan(load(SPEC), "dor"))
    step = work.answers.texts("change_of_virtual_channel")
    key = "change_of_virtual_channel"
    if len(step) != 2:
        yield work.answers.wrong(key, "must be two channels: [before, after]")
    elif step[0][-2:] == step[1][-2:] or tuple(step) not in dependencies(state, FlowControl.PFC):
        text = f"no packet moves from {step[0]} to {step[1]} and changes its virtual channel there"
        yield work.answers.wrong(key, text)


def cycle(work: Work) -> Iterator[str]:
    """The cycle in the answer exists if PAUSE stops both virtual channels together."""
    state = state_of_plan(make_plan(load(SPEC), "dor"))
    yield from wrong_cycle(work.answers, "cycle_under_pause", state, FlowControl.PAUSE)


def running(work: Work) -> Iterator[str]:
    """The running ring has been under load on both virtual channels, with PFC, and is alive."""
    status = status_of(work, SPEC)
    yield from wrong_setting(status, "engine", "dor", "start it with --engine dor")
    links = counters_of(work)["channels"]
    inner = [link for link in links if ":" in link["channel"] and link["channel"] in _between()]
    emulator = status["emulator"] or {}
    if emulator.get("deadlock"):
        yield "the running ring is frozen: type 'flowcontrol pfc', and start the senders again"
    used = {p["priority"] for link in inner for p in link["priorities"] if p["tx_frames"]}
    if len(used) < 2:
        yield (
            f"frames between switches have used {len(used)} virtual channels since the last"
            " 'flowcontrol', and must have used 2: start all five senders"
        )
    if not any(p["paused_us"] for link in inner for p in link["priorities"]):
        yield "no channel between switches has been paused: let the senders run for longer"


def _between() -> set[str]:
    """Return the names ``SWITCH:PORT`` of the channels between switches."""
    links = load(SPEC).links
    ends = [(link.a, link.a_port) for link in links] + [(link.b, link.b_port) for link in links]
    return {f"{switch}:{port}" for switch, port in ends}


LAB = Lab(4, "virtual-channels", (number, change, cycle), (running,))
