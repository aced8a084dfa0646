"""Delivery by rules while links are cut: packets sent to a cut link are lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from knotless.forwarding.openflow.rules import (
    IN_PORT,
    Action,
    FabricRules,
    Field,
    Output,
    Rule,
    SwitchRules,
)
from knotless.topologies.fabric import Fabric
from knotless.verification.check import Verdict

_FIRST = 0xFFFF


@dataclass(frozen=True)
class CutLinks:
    """The channels that carry nothing now, ``s1:2`` or ``h1``, and those whose port sees it.

    A port without carrier is ``down``: fast-failover groups then take their backups.
    """

    dead: frozenset[str]
    down: frozenset[str]

    def rules_in_effect(self, fabric: Fabric, rules: FabricRules) -> FabricRules:
        """Return rules that do with all links what ``rules`` do while these are cut."""
        hosts = {host.name: (host.switch, host.port) for host in fabric.hosts}
        muted = {hosts[name] for name in self.dead if name in hosts}
        changed = dict(rules)
        for switch in fabric.switches:
            if switch.name in rules:
                changed[switch.name] = _in_effect(
                    rules[switch.name],
                    down=_ports(switch.name, self.down),
                    dead=_ports(switch.name, self.dead),
                    muted={port for name, port in muted if name == switch.name},
                )
        return changed


def _ports(switch: str, channels: Iterable[str]) -> set[int]:
    ends = (channel.rpartition(":") for channel in channels)
    return {int(port) for name, _, port in ends if name == switch}


def _in_effect(
    rules: SwitchRules, *, down: Collection[int], dead: Collection[int], muted: Collection[int]
) -> SwitchRules:
    if not (down or dead or muted):
        return rules
    live = rules.live(down)

    def sent(actions: tuple[Action, ...], in_port: int | None = None) -> tuple[Action, ...]:
        """Return actions without the outputs to dead ports, IN_PORT among them."""
        return tuple(
            action
            for action in actions
            if not isinstance(action, Output)
            or (in_port if action.port == IN_PORT else action.port) not in dead
        )

    def in_port_of(rule: Rule) -> int | None:
        return next((f.value for f in rule.match if f.name == "in_port" and f.mask is None), None)

    silenced = (Rule(0, _FIRST, (Field("in_port", port),)) for port in sorted(muted))
    kept = (
        rule
        for rule in live.rules
        if not (rule.table == 0 and rule.priority == _FIRST and in_port_of(rule) in muted)
    )
    return SwitchRules(
        tuple(
            sorted(
                [
                    *silenced,
                    *(rule._replace(actions=sent(rule.actions, in_port_of(rule))) for rule in kept),
                ],
                key=lambda rule: rule.order,
            )
        ),
        tuple(replace(group, buckets=tuple(map(sent, group.buckets))) for group in live.groups),
    )


def with_losses(verdict: Verdict, cut: Verdict, links: Collection[str]) -> Verdict:
    """Return ``verdict`` with what is not delivered while links are cut.

    ``cut`` is the verdict on :meth:`CutLinks.rules_in_effect`. Whether a deadlock is possible is
    judged with all links: a cut one may come back at any time.
    """
    lines = [f"cut: {link}" for link in links] if cut.failed > verdict.failed else []
    return replace(
        verdict,
        undelivered=cut.undelivered,
        broadcasts_undelivered=cut.broadcasts_undelivered,
        multicasts_undelivered=cut.multicasts_undelivered,
        problems=[*lines, *cut.problems],
    )
