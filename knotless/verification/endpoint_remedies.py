"""Changes of end points, or of routes, with which hosts close no cycle, each proven on the change.

References
----------
Hansson, Goossens and Radulescu, Avoiding message-dependent deadlock in network-based systems on
chip, VLSI Design, 2007 (virtual networks for replies; end-to-end flow control that fits the buffers
of receivers).

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FlowControl
from knotless.forwarding.state import ForwardingState
from knotless.routing.plan import make_plan
from knotless.traffic.endpoints import EndpointModel
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.endpoint_verdict import EndpointVerdict, verdict_with_endpoints
from knotless.verification.remedies import Remedy
from knotless.verification.remedy_engine import ENGINES, MAX_HOSTS

FILE = "endpoints.yaml"
"""The name of the file of changed end points."""
_NO_COST = {"extra_priorities": 0, "ports": 0, "routes": 0, "pairs_lost": 0}
Changes = Mapping[str, Mapping[str, Any]]
"""Values of message classes that change, by class and key."""


def endpoint_remedies(
    state: ForwardingState, model: EndpointModel, verdict: EndpointVerdict, *, replanned: bool
) -> Iterator[Remedy]:
    """Yield changes of the end points of an unsafe fabric that make it safe, as it is routed.

    With ``replanned``, switches can be told to keep messages of different priorities apart.
    """
    control = verdict.flow_control
    for kind, text, changes in _changes(model, len(state.fabric.hosts), control, replanned):
        changed = model.changed(**changes)
        try:
            is_safe = verdict_with_endpoints(state, changed, control).safe
        except KnotlessError:
            continue  # more virtual channels than links have
        if is_safe:
            extra = len(changed.priorities) - len(model.priorities)
            yield _remedy(kind, text, changed, changes, extra)


def engine_remedies(checked: CheckedPlan) -> Iterator[Remedy]:
    """Yield the engines with whose routes the end points of an unsafe plan are safe.

    Where they are not as they are, with the first change of them that is enough then.
    """
    plan, model = checked.plan, checked.endpoints
    if model is None or len(plan.fabric.hosts) > MAX_HOSTS:
        return
    routes = len(plan.fabric.hosts) * len(plan.fabric.switches)
    for engine in ENGINES:
        if engine == plan.engine:
            continue
        try:
            other = replace(checked, plan=make_plan(plan.fabric, plan.request.but(engine=engine)))
            verdict = other.endpoint_verdict
        except KnotlessError:
            continue
        if verdict is None or verdict.failed:
            continue
        text, line = f"all routes by the engine {engine}", f"route with --engine {engine}"
        cost = {**_NO_COST, "routes": routes}
        if verdict.safe:
            yield Remedy("engine", text, (line,), cost)
            continue
        for more in endpoint_remedies(other.state, model, verdict, replanned=True):
            both = f"{text}, and {more.text}"
            cost = {**more.cost, "routes": routes}
            yield Remedy("engine", both, (line, *more.changes), cost, None, more.files)
            break


def _changes(
    model: EndpointModel, hosts: int, control: FlowControl, replanned: bool
) -> Iterator[tuple[str, str, Changes]]:
    by_priority = control.switch_links.by_priority and control.host_links.by_priority
    if replanned and by_priority and (changes := _apart(model, hosts)):
        yield (
            "virtual-channel",
            "messages that hosts send for others on priorities of their own",
            changes,
        )
    if changes := _bounds(model, hosts):
        yield "bound", "a bound on unanswered messages that fits the reserve", changes
    if changes := _reserves(model, hosts):
        yield "reserve", "a reserve at each host for all messages that can be unanswered", changes


def _apart(model: EndpointModel, hosts: int) -> Changes:
    """Return priorities, each higher than those of the classes that wait for it; or nothing."""
    level = dict.fromkeys(model.classes, 0)
    waits = [*model.waits(hosts)]
    for _ in model.classes:
        for taken, sent in waits:
            level[sent] = max(level[sent], level[taken] + 1)
    if any(level[sent] <= level[taken] for taken, sent in waits):
        return {}  # a class that is sent for itself
    return {
        name: {"priority": priority}
        for name, priority in level.items()
        if priority != model.classes[name].priority
    }


def _bounds(model: EndpointModel, hosts: int) -> Changes:
    """Return the largest bounds with which all reserves suffice; nothing if there are none."""
    first = [name for name in model.classes if name not in model.required]
    senders = max(1, hosts - 1)
    largest = max((reserve.reserve for reserve in model.reserves(hosts)), default=0) // senders
    suits = partial(_suffices, model, hosts, first)
    if not first or not largest or not suits(1):
        return {}
    low, high = 1, largest + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if suits(middle) else (low, middle)
    return {
        name: {"outstanding": low}
        for name in first
        if (bound := model.classes[name].outstanding) is None or bound > low
    }


def _suffices(model: EndpointModel, hosts: int, first: list[str], bound: int) -> bool:
    changed = model.changed(**{name: {"outstanding": bound} for name in first})
    return all(reserve.suffices for reserve in changed.reserves(hosts))


def _reserves(model: EndpointModel, hosts: int) -> Changes:
    """Return the least reserves that suffice; for classes without a bound also one of 1."""
    changes: dict[str, dict[str, Any]] = {
        name: {"outstanding": 1}
        for name, one in model.classes.items()
        if name not in model.required and one.sends_before_taking and one.outstanding is None
    }
    for reserve in model.changed(**changes).reserves(hosts):
        if reserve.outstanding is None:
            return {}  # a class that is sent for itself
        missing = reserve.senders * reserve.outstanding - reserve.reserve
        if missing > 0:
            own = model.classes[reserve.message].reserve
            changes.setdefault(reserve.message, {})["reserve"] = own + missing
    return changes


def _remedy(
    kind: str, text: str, changed: EndpointModel, changes: Changes, extra_priorities: int
) -> Remedy:
    lines = [
        f"{name}: {key} {value}"
        for name, of_class in changes.items()
        for key, value in of_class.items()
    ]
    cost = {**_NO_COST, "extra_priorities": extra_priorities}
    return Remedy(kind, text, tuple(lines), cost, None, {FILE: changed.text})
