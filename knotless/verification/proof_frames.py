"""Frames of hosts that a proof is about, beside untagged ones from their own addresses.

Hosts can also send frames with tags, or from addresses of others. A proof is about these as well if
the rules of switches make no more of them than of the others, as those of our plans: each host's
first switch drops them, or puts its own tag on them, below which nobody looks. What is decided here
is only what a proof claims: whoever checks it sees whether that is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.rules import (
    ADMISSION,
    NO_RULES,
    Action,
    FabricRules,
    Field,
    Output,
    PopVlan,
    PushVlan,
    Rule,
    SetField,
    SwitchRules,
)
from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric, Host
from knotless.topologies.numbering import mac_value

_TAGGED = 0x1000
_NO_VLAN = 0xFFF
"""The mask of vlan_vid that 'untagged, or with a priority only' has, see Field."""
_PRIORITISED = Field("vlan_vid", 0, _NO_VLAN)
_TAG_FIELDS = ("vlan_vid", "vlan_pcp")


@dataclass(frozen=True)
class SentFrames:
    """Whether a proof is about frames with any ``tags``, and from any ``sources``.

    If not, it names the switch that does more with them than with others; else it is empty.
    """

    tags: str
    sources: str

    @property
    def lines(self) -> list[str]:
        """The lines of the proof file."""
        kinds = {"tags any": self.tags, "sources any": self.sources}
        return [line for line, reason in kinds.items() if not reason]

    @property
    def not_covered(self) -> str:
        """A sentence about the frames that the proof is not about; empty if there are none."""
        kinds = {"with tags": self.tags, "from addresses of others": self.sources}
        left_out = [f"{kind} (see {switch})" for kind, switch in kinds.items() if switch]
        return f"not covered: frames that hosts send {' or '.join(left_out)}" * bool(left_out)


def sent_frames(
    fabric: Fabric, rules: FabricRules, control: FlowControl, tags_of_hosts: HostTags | None = None
) -> SentFrames:
    """Return which frames a proof is about, of rules with which hosts' own frames cannot deadlock.

    Those are untagged, or have the tags that hosts have to use.

    Examples
    --------
    >>> from knotless.forwarding.openflow.compiler import compile_rules
    >>> from knotless.routing.plan import make_plan
    >>> from knotless.topologies import load
    >>> plan = make_plan(load("ring,4"))
    >>> sent_frames(plan.fabric, compile_rules(plan), plan.flow_control).lines
    ['tags any', 'sources any']

    """
    held = {name: rules.get(name, NO_RULES) for name in fabric.neighbours}
    one_queue = len(set(control.switch_links.classes)) == 1
    ignore_tags = one_queue and not any(map(_uses_tags, held.values()))
    ignore_sources = not any(_tests(each.rules, ["eth_src"]) for each in held.values())
    admitting = {
        host.name: [rule for rule in held[host.switch].rules if _is_met_first(rule, host)]
        for host in fabric.hosts
    }
    tags = sources = ""
    for host in fabric.hosts:
        passing = [rule for rule in admitting[host.name] if rule.actions or rule.goto is not None]
        dropping = [rule for rule in admitting[host.name] if rule not in passing]
        if not ignore_tags and not (
            _covers_tags(passing, set((tags_of_hosts or {}).get(host.name, {}).values()))
            and all(map(_treats_alike, dropping))
        ):
            tags = tags or host.switch
        own = Field("eth_src", mac_value(host.mac))
        if not ignore_sources and not all(own in rule.match for rule in passing):
            sources = sources or host.switch
    for name, each in held.items():
        ports = {host.port for host in fabric.hosts if host.switch == name}
        if not ignore_tags and any(_looks_below(actions, ports) for actions in _lists(each)):
            tags = tags or name
    return SentFrames(tags, sources)


def sent_in_all(fabric: Fabric, rules: Iterable[FabricRules], control: FlowControl) -> SentFrames:
    """Return which frames a proof is about that switches hold any of several rules."""
    each = [sent_frames(fabric, one, control) for one in rules]
    tags = next((one.tags for one in each if one.tags), "")
    return SentFrames(tags, next((one.sources for one in each if one.sources), ""))


def _is_met_first(rule: Rule, host: Host) -> bool:
    """Tell whether frames of a host can meet a rule in the first table."""
    ports = [field for field in rule.match if field.name == "in_port"]
    return rule.table == ADMISSION and all(port.value == host.port for port in ports)


def _tests(rules: Iterable[Rule], names: Iterable[str]) -> bool:
    return any(field.name in names for rule in rules for field in rule.match)


def _covers_tags(passing: Iterable[Rule], vlans: set[int]) -> bool:
    """Tell whether frames with a tag are dropped, unless these rules hide it from all others.

    A tag with which the host has to send, of ``vlans``, may remain if its priority is set.
    """
    tests = set[tuple[Field, ...]]()
    for rule in passing:
        tested = tuple(field for field in rule.match if field.name in _TAG_FIELDS)
        first = rule.actions[0] if rule.actions else None
        if (
            tested in {(Field("vlan_vid", _TAGGED | vlan),) for vlan in vlans}
            and isinstance(first, SetField)
            and first.name == "vlan_pcp"
        ):
            continue
        tests.add(tested)
        hides = [type(action) for action in rule.actions[:3]] == [PushVlan, SetField, SetField]
        sets = {action.name for action in rule.actions[1:3] if isinstance(action, SetField)}
        untagged = tested == (Field("vlan_vid", 0),)
        prioritised = tested == (_PRIORITISED,)
        if not untagged and not (prioritised and hides and sets == {*_TAG_FIELDS}):
            return False
    return len(tests) <= 1


def _treats_alike(dropping: Rule) -> bool:
    """Tell whether a rule drops no untagged frames that it would not drop with a tag."""
    tested = [field for field in dropping.match if field.name in _TAG_FIELDS]
    needs_tag = any(
        field.name == "vlan_vid"
        and field.value & (field.value if field.mask is None else field.mask)
        for field in tested
    )
    return needs_tag or tested in ([], [_PRIORITISED])


def _uses_tags(held: SwitchRules) -> bool:
    changes = (PushVlan, PopVlan, SetField)
    return _tests(held.rules, _TAG_FIELDS) or any(
        isinstance(action, changes) for actions in _lists(held) for action in actions
    )


def _lists(held: SwitchRules) -> Iterator[tuple[Action | None, ...]]:
    """Yield the actions of each rule and bucket; None at the end: other tables follow."""
    for rule in held.rules:
        later: tuple[Action | None, ...] = () if rule.goto is None else (None,)
        yield (*rule.actions, *later)
    for group in held.groups:
        yield from group.buckets


def _looks_below(actions: Iterable[Action | None], host_ports: set[int]) -> bool:
    """Tell whether a tag is removed of a frame that does not go to hosts then."""
    removed = False
    for action in actions:
        if removed and not (isinstance(action, Output) and action.port in host_ports):
            return True
        removed = removed or isinstance(action, PopVlan)
    return False
