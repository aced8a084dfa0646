"""From a forwarding state to OpenFlow 1.3 rules: four tables in every switch.

- admission: a host's own untagged frames get their VLAN and first priority (with tagging by
  hosts, those in the VLAN planned for their destination get the priority); frames from other
  switches pass when their VLAN is in use; all else is dropped.
- forward: (VLAN,) destination -> output port, kept in the metadata. Broadcast and multicast are
  copied by groups, by in port and source.
- virtual channel: (in port, out port, priority) -> new priority.
- output: untag for a host, or send on.

Rules are ternary and as few as the Rust core finds (``core/forwarding/src/compile``): addresses are
matched in the bits that matter at a switch, and packets that cannot occur need no rules.
"""

from __future__ import annotations

from common.errors import PlanError
from forwarding.from_plan import state_of_plan
from forwarding.openflow.compiled import CompiledRules
from forwarding.state import ForwardingState
from knotless_core import forwarding as core
from routing.plan import Plan
from topologies.numbering import mac_value


def compile_rules(plan: Plan) -> CompiledRules:
    """Return the rules of every switch, in the order of the fabric's switches.

    Raises
    ------
    PlanError
        The switches' tables cannot express what the plan wants.

    """
    return compile_state(state_of_plan(plan), tagging=plan.tagging)


def compile_state(state: ForwardingState, *, tagging: str = "switch") -> CompiledRules:
    """Return the rules that do what a state says; ``tagging`` tells who tags hosts' frames.

    Raises
    ------
    PlanError
        The switches' tables cannot express the state.

    """
    state.fabric.refuse_hub("given rules")
    macs = [mac_value(host.mac) for host in state.fabric.hosts]
    groups = [group.address for group in state.groups]
    try:
        compiled = core.compile_rules(state.core, macs, groups, tagging == "host")
    except LookupError as refused:
        switch, reason = refused.args
        raise PlanError(f"{state.channels.names[switch]}: {reason}") from None
    return CompiledRules(state.channels.names, compiled)
