"""Rules read from ovs-ofctl's OpenFlow13 text.

The core reads what :mod:`knotless.forwarding.openflow.ofctl_writer` wrote, and what ``ovs-ofctl -O
OpenFlow13 dump-flows`` and ``dump-groups`` print, rules of others included as far as
:class:`knotless.forwarding.openflow.rules.Rule` can hold them. Open vSwitch's own parser is slower
and does not read its dumps (docs/decisions/libraries.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from knotless._core import forwarding as core
from knotless.base.errors import RuleError
from knotless.forwarding.openflow.rules import Rule, SwitchRules

TOP_PRIORITY = core.TOP_PRIORITY
"""That of a rule which cannot be read and may have any priority."""


def parse(flows_text: str, groups_text: str = "") -> SwitchRules:
    """Return the rules that both texts describe, sorted by table, -priority and match.

    Rules may send to the reserved ports FLOOD and ALL.

    Raises
    ------
    RuleError
        A line cannot be parsed or represented; the message names it.

    """
    try:
        return SwitchRules(*core.parse_rules(flows_text, groups_text))
    except ValueError as error:
        raise RuleError(str(error)) from None


@dataclass(frozen=True)
class KnownRules:
    """The rules and groups of a text that can be read.

    ``faults`` are what is wrong with other lines. ``unread`` are the rules on these lines, without
    their actions: each matches at least what the rule does.
    """

    rules: SwitchRules
    faults: tuple[str, ...]
    unread: tuple[Rule, ...]


def parse_known(text: str, ports: Mapping[str, int] = MappingProxyType({})) -> KnownRules:
    """Return the rules and groups in ``text`` that can be represented.

    ``ports`` are the numbers of ports that rules name, as ``ovs-ofctl --names`` writes them. Rules
    may send to the reserved ports FLOOD, ALL and NORMAL.
    """
    rules, groups, faults, unread = core.parse_known_rules(text, dict(ports))
    return KnownRules(SwitchRules(rules, groups), tuple(faults), unread)
