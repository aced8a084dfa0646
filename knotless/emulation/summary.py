"""The state of a running fabric in sentences, for every command, page and terminal view. Pure.

One function decides what is a problem. ``knotless status``, the page and ``knotless top`` show what
it returns, in its order, and a command's exit status follows from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from knotless.base.flow_control import FlowControl
from knotless.base.forwarding_loops import NOT_WATCHED
from knotless.base.link_problems import link_problems, measurement_notes
from knotless.base.printable import listed
from knotless.emulation.names import DEFAULT_NAME

CHANGE_TEXTS = {
    0: "nothing changes",
    1: "one step: all switches at once, in any order",
    2: "two-phase, with a second VLAN generation: no frame is dropped",
    3: "with dropping: in batches, or some frames are dropped",
}
"""What each tier of a change means."""


def fabric_problems(
    *,
    phase: str,
    processes: Sequence[str] = (),
    proof: Sequence[str] = (),
    controller: Mapping[str, Any] | None,
    emulator: Mapping[str, Any] | None,
    unread: Sequence[str] = (),
) -> list[str]:
    """Return all problems of a fabric, one line each, a deadlock first.

    Parameters
    ----------
    phase : str
        ``starting``, ``ready`` or ``dead``.
    processes : sequence of str
        Lines about parts that have died.
    proof : sequence of str
        A line if the rules should be proven and are not.
    controller, emulator : mapping or None
        Their status; None if unavailable.
    unread : sequence of str
        Lines about what does not answer.

    """
    of_links = link_problems(emulator or {})
    deadlocked = int(bool((emulator or {}).get("deadlock")))
    return [
        *of_links[:deadlocked],
        *processes,
        *proof,
        *(f"controller: {line}" for line in _of_controller(controller, phase)),
        *of_links[deadlocked:],
        *unread,
    ]


def _of_controller(status: Mapping[str, Any] | None, phase: str) -> list[str]:
    if status is None:
        return []
    lines = list(status.get("problems") or ())
    return [*lines, *_without_rules(status, lines)] if phase == "ready" else lines


def _without_rules(status: Mapping[str, Any], lines: Sequence[str]) -> Iterator[str]:
    """Yield lines if switches may lack rules, unless ``lines`` say why already.

    A switch that has restarted is connected again before it is read and gets its rules, and its
    links are up before routes return to them: its hosts are cut off until then.
    """
    waiting = [
        name
        for name, switch in status.get("switches", {}).items()
        if switch["connected"] and not switch["installed"]
    ]
    if waiting:
        yield f"switches that have not confirmed their rules: {listed(waiting)}"
    elif not status.get("ready", True) and not lines:
        yield "not ready: it has not read all switches yet"
    routes = status.get("routes", {})
    up_again = set(routes.get("failed", ())) - set(status.get("links_down", ()))
    if up_again and not (lines or routes.get("settling")):
        yield f"routes still avoid what is up again: {listed(sorted(up_again))}"


def routes_text(controller: Mapping[str, Any]) -> str | None:
    """Return what became of the routes: repaired or changed, how fast, and who reaches whom.

    ``controller`` is the answer to ``GET /status``. None if nothing has changed since its start.
    """
    routes, last = controller.get("routes") or {}, controller.get("last_change")
    if routes.get("changing"):
        waiting = routes.get("waiting_for") or ()
        return "being changed" + (f", waiting for {listed(waiting)}" if waiting else "")
    if not last:
        return None
    avoided = [*last["failed"], *(f"{part} (drained)" for part in last["drained"])]
    if last["failed"]:
        what = f"repaired: they avoid {listed(avoided)}"
    else:
        what = f"changed: they avoid {listed(avoided)}" if avoided else "as planned again"
    apart = controller.get("unreachable") or 0
    reach = f"{apart} pairs of hosts cannot reach each other" if apart else "all hosts are reached"
    return f"{what}; {last['rules_changed']} rules in {1000 * last['seconds']:.0f} ms; {reach}"


def fabric_notes(
    *,
    controller: Mapping[str, Any] | None,
    emulator: Mapping[str, Any] | None = None,
    cut: Sequence[str] = (),
    stopped: Sequence[str] = (),
    plain: bool = False,
    interfaces: Mapping[str, str] | None = None,
) -> list[str]:
    """Return what is to be known although it is no problem, one line each.

    ``controller`` and ``emulator`` are their status. ``cut`` and ``stopped`` are what users cut and
    stopped, as text; ``plain`` tells that links are not emulated. ``interfaces`` are the nodes with
    numbered interfaces, with the name that begins those.
    """
    lines = measurement_notes(emulator or {})
    if plain:
        lines.append(NOT_WATCHED)
    if controller:
        if routes := routes_text(controller):
            lines.append(f"routes: {routes}")
        if role := controller.get("role"):
            others = [other for other in role["controllers"] if other != role["active"]]
            active = role["active"] or "none yet"
            lines.append(f"active controller: {active}; others: {', '.join(others)}")
        if drained := controller.get("drained"):
            lines.append(f"drained: {', '.join(drained)}")
        if _by_credits(controller):
            lines.append("flow control by credits: a paused channel waits for credit")
    if cut:
        lines.append(f"cut: {', '.join(cut)}")
    if stopped:
        lines.append(f"stopped: {', '.join(stopped)}")
    if interfaces:
        shown = listed((f"{node} {name}" for node, name in interfaces.items()), 4)
        lines.append(f"interfaces are numbered where names do not fit: {shown}")
    return lines


def _by_credits(controller: Mapping[str, Any] | None) -> bool:
    return (controller or {}).get("flow_control") == FlowControl.CREDITS


def deadlock_reason(controller: Mapping[str, Any] | None) -> str:
    """Return why a deadlock stays, in plain words; with the routes if ``controller`` is known."""
    waits = "may send only when"
    if _by_credits(controller):
        waits = "waits for credit, which comes when"
    why = (
        f"Each channel {waits} the next buffer has room, and that buffer empties only through the"
        " next channel of the ring."
    )
    if controller is None or not controller.get("engine"):
        return why
    control = FlowControl(controller["flow_control"])
    return f"{why} The routes (engine {controller['engine']}) close this ring {control.condition}."


def deadlock_advice(
    name: str, fabric: str, controller: Mapping[str, Any] | None
) -> list[dict[str, str]]:
    """Return what to do in a deadlock, the nearest first: ``do`` in words and the ``command``.

    The routes of a running fabric cannot be changed away from rules that can deadlock, because no
    step of such a change can be proven: the fabric is started again with others.
    """
    which = "" if name == DEFAULT_NAME else f" --name {name}"
    again = f"knotless down{which} && knotless up {fabric}{which}"
    release = "end it now: drop all frames in the fabric; all counters begin at zero"
    advice = [{"do": release, "command": f"knotless release{which}"}]
    check = (controller or {}).get("check") or {}
    if controller is not None and not check.get("cycle"):
        find = "the plan closes no ring: find the rules that do"
        return [*advice, {"do": find, "command": f"knotless check --live{which}"}]
    others = "with the same routes it comes back: start again with routes that close no ring"
    advice.append({"do": others, "command": f"{again} --engine updown"})
    if controller is not None and controller.get("engine") == "dor":
        control = FlowControl.CREDITS if _by_credits(controller) else FlowControl.PFC
        what = f"a second virtual channel and {control.description}"
        channels = f"or with {what}, which opens the ring"
        command = f"{again} --engine dor --vcs 2 --flow-control {control}"
        advice.append({"do": channels, "command": command})
    return advice
