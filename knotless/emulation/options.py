"""Options of a running fabric that must agree with each other."""

from __future__ import annotations

from collections.abc import Collection

from knotless.base.errors import EmulationError
from knotless.base.flow_control import AUTO, FlowControl, refuse_bubbles, resolved
from knotless.emulation.limits import require_limits
from knotless.emulation.priority import Priority, default_priority
from knotless.routing.plan import make_plan, refuse_unruly
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.verification.checked_plan import CheckedPlan

PORTS_OF_ONE = 256
"""Unless a number is asked for, a fabric with more ports has several Open vSwitch processes."""
PORTS_OF_EACH = 50
"""Then each has about as many ports. Both are fitted; see docs/decisions/switch-processes.md."""
MOST_PROCESSES = 32


def priority(asked: str | None) -> Priority:
    """Return the priority of a fabric's parts; raises :class:`EmulationError` for another word."""
    if asked is None:
        return default_priority.get()
    if asked not in list(Priority):
        raise EmulationError(f"priority {asked[:40]!r}: one of {', '.join(Priority)}")
    return Priority(asked)


def with_flow_control(
    fabric: Fabric, request: PlanRequest, *, links: str, controller: str
) -> PlanRequest:
    """Return the request with ``auto`` flow control resolved.

    Without our controller there is no plan: PAUSE. Raises :class:`EmulationError` for flow control
    on plain links, and PlanError for bubbles.
    """
    chosen = request.flow_control
    refuse_bubbles(chosen, "a running fabric")
    if links == "plain":
        if chosen not in (AUTO, FlowControl.NONE):
            raise EmulationError(f"plain links have no flow control: omit {str(chosen)!r}")
        chosen = FlowControl.NONE
    elif chosen == AUTO and controller == "ryu":
        chosen = make_plan(fabric, request).flow_control
    return request.but(flow_control=resolved(chosen, 1))


def switch_processes(
    asked: int | None, fabric: Fabric, *, links: str, datapath: str, tls: bool
) -> int:
    """Return how many Open vSwitch processes share the switches; None: as its ports need.

    On each wake-up the userspace datapath polls all ports of its process
    (docs/decisions/switch-processes.md). Plain links and connections of TLS join the switches in
    one network namespace, so they have one process. Raises :class:`EmulationError`.
    """
    one = {
        "--links plain": links == "plain",
        "--tls": tls,
        "the kernel's datapath": datapath == "kernel",
    }
    why = next((option for option, given in one.items() if given), None)
    if asked is not None:
        if asked > 1 and why:
            raise EmulationError(f"{why} needs --switch-processes 1: omit {asked}")
        return asked
    ports = 2 * len(fabric.links) + len(fabric.hosts)
    if why or ports <= PORTS_OF_ONE:
        return 1
    return min(MOST_PROCESSES, -(-ports // PORTS_OF_EACH))


def check_tagging(fabric: Fabric, *, links: str, tagged: Collection[str] | None) -> None:
    """Check the options of a fabric whose hosts tag; ``tagged`` are those whose tags are known.

    Raises :class:`EmulationError`.
    """
    if links == "plain":
        raise EmulationError(
            "tagging by hosts needs emulated links: the emulator is the interface that tags"
        )
    if tagged is None or set(tagged) != set(fabric.host_index):
        raise EmulationError("tagging by hosts needs the plan's host_tags, of every host")


def check_controllers(
    *, controller: str, controllers: int, clock: str, tls: bool, links: str
) -> None:
    """Check the options of the controllers; raises :class:`EmulationError`."""
    if tls and controller != "ryu":
        raise EmulationError("--tls needs our own controller: omit --controller")
    if controllers != 1 and controller != "ryu":
        raise EmulationError("--controllers starts our own ones: omit --controller")
    if clock == "virtual" and (links, controller) != ("emulated", "ryu"):
        raise EmulationError("--controller-clock needs our own controller and emulated links")


def checked_plan(
    fabric: Fabric,
    request: PlanRequest,
    *,
    links: str = "emulated",
    controller: str = "ryu",
    allow_deadlock: bool = False,
) -> CheckedPlan:
    """Return the plan of a fabric to be started; its controller will compute the same one.

    Raises
    ------
    KnotlessError
        The plan does not exist, the limits of this process are too low for the fabric, or the plan
        can deadlock without permission. Without our own controller it is not used, so it is not
        refused.

    """
    if links == "plain" and request.flow_control == AUTO:
        request = request.but(flow_control=FlowControl.NONE)
    require_limits(fabric)
    checked = CheckedPlan(make_plan(fabric, request))
    if controller == "ryu":
        refuse_unruly(checked.plan)
    if controller == "ryu" and not allow_deadlock:
        checked.refuse_deadlock()
    return checked
