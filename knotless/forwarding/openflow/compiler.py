"""Compilation of a forwarding state to OpenFlow 1.3 rules, in four tables per switch.

- admission: a host's own untagged frames get their VLAN and first priority (if hosts tag, frames
  in the VLAN planned for their destination get the priority); frames from other switches pass if
  their VLAN is in use; all others are dropped. With a source check, ARP frames and IPv4 packets
  must also name their host as their source.
- forward: (VLAN,) destination -> output port, stored in the metadata; of several ports, a hash
  chooses one. Broadcasts and multicasts are copied by groups, by input port and source.
- virtual channel: (input port, output port, priority) -> new priority.
- output: remove the tag and send to a host, or send to the next switch.

Rules are ternary. The Rust core (``core/forwarding/src/compile``) minimises them: it matches only
the address bits that matter at a switch, and makes no rules for packets that cannot occur.
"""

from __future__ import annotations

from collections.abc import Iterable

from knotless._core import forwarding as core
from knotless.base.errors import PlanError
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.openflow.compiled import CompiledRules
from knotless.forwarding.openflow.failover import ProtectedRules
from knotless.forwarding.openflow.rules import Field
from knotless.forwarding.state import ForwardingState
from knotless.routing.failover.choose import choose_backups
from knotless.routing.plan import Plan, refuse_adaptive
from knotless.routing.request import SourceCheck
from knotless.topologies.fabric import known_ips
from knotless.topologies.numbering import mac_value

_CHECKED = (0x0806, 0x0800, 0x8100, 0x88A8)
"""EtherTypes whose source addresses may be checked, and those of tags that would hide them."""


def compile_rules(plan: Plan) -> CompiledRules:
    """Return the rules of every switch, in the order of the fabric's switches.

    Those of an intact plan have backups if it asks for them; a repaired plan has none.

    Raises
    ------
    PlanError
        The switches' tables cannot express the plan.

    """
    refuse_adaptive(plan)
    state = state_of_plan(plan)
    rules = compile_state(
        state,
        tagging=plan.tagging,
        source_check=plan.source_check,
        hash_seed=plan.request.hash_seed,
    )
    return with_backups(plan, rules)


def with_backups(plan: Plan, rules: CompiledRules) -> CompiledRules:
    """Return the compiled rules of ``plan`` with its backups, if it asks for them.

    Raises
    ------
    PlanError
        There is no room for backups, or the plan can deadlock.

    """
    if plan.request.protection == "none" or plan.failures:
        return rules
    return ProtectedRules(plan, rules, choose_backups(plan))


def compile_state(
    state: ForwardingState,
    *,
    tagging: str = "switch",
    source_check: SourceCheck = "mac",
    hash_seed: int = 0,
) -> CompiledRules:
    """Return the rules that implement a state; ``tagging`` says who tags frames.

    ``source_check`` says which source addresses hosts may not forge, as in
    :class:`knotless.routing.request.PlanRequest`. ``hash_seed`` is that of the choices among ports.

    Raises
    ------
    PlanError
        The switches' tables cannot express the state.

    """
    state.fabric.refuse_hub("given rules")
    macs = [mac_value(host.mac) for host in state.fabric.hosts]
    groups = [group.address for group in state.groups]
    ips = None if source_check == "mac" else known_ips(state.fabric)
    try:
        compiled = core.compile_rules(
            state.core, macs, groups, tagging == "host", ips, source_check == "ip", hash_seed
        )
    except LookupError as refused:
        switch, reason = refused.args
        raise PlanError(f"{state.channels.names[switch]}: {reason}") from None
    return CompiledRules(state.channels.names, compiled)


def is_source_check(match: Iterable[Field]) -> bool:
    """Tell whether a rule of the first table drops what a host sends with a foreign source.

    It is for ARP frames, IPv4 packets or frames with two tags of one port, whatever their MAC
    address.
    """
    values = {field.name: field.value for field in match}
    of_a_type = values.get("eth_type") in _CHECKED and "in_port" in values
    return of_a_type and "eth_src" not in values
