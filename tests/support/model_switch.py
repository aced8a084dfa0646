"""Models of switches that are slow and lose their connections, for tests of the controller.

A session takes a random number of turns of the green threads for whatever it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from knotless.controller import runtime
from knotless.controller.openflow.session import SwitchContents, SwitchGoneError
from knotless.controller.reconcile import (
    OTHER_FIELD,
    Change,
    Changes,
    FoundGroup,
    FoundRule,
    RuleChange,
)
from knotless.controller.updates.planning import UpdatePlan
from knotless.controller.updates.timing import Timing
from knotless.forwarding.openflow.rules import Group, Rule, SwitchRules, ToGroup

TIMING = Timing(lambda call, *task: call(*task), counters_interval_s=0, retry_s=0, keep_after_s=0)
REFUSAL = "OFPFMFC_TABLE_FULL"
UP, DOWN = True, False


class ModelSwitch:
    """Rules, groups and ports of a switch, whoever is connected to it."""

    def __init__(self, dpid: int, ports: Iterable[int] = (1, 2, 3)) -> None:
        self.dpid = dpid
        self.rules: dict[Any, Rule] = {}
        self.groups: dict[int, Group] = {}
        self.ports = dict.fromkeys(ports, UP)
        self.counters = dict.fromkeys(self.ports, (0, 0))
        self.unreadable: set[int] = set()
        """Cookies of rules that ours cannot represent."""
        self.refuses: Callable[[Change], bool] = lambda _change: False
        """Whether it refuses a change."""
        self._held = SwitchRules(())

    @property
    def held(self) -> SwitchRules:
        """What it holds now: the same object as long as that is the same."""
        rules, groups = tuple(self.rules.values()), tuple(self.groups.values())
        if (rules, groups) != (self._held.rules, self._held.groups):
            self._held = SwitchRules(rules, groups)
        return self._held

    def restart(self) -> None:
        """Lose all rules and groups."""
        self.rules.clear()
        self.groups.clear()

    def apply(self, change: Change) -> None:
        if isinstance(change, RuleChange):
            if change.command == "delete":
                self.rules.pop(change.rule.key, None)
            else:
                self.rules[change.rule.key] = change.rule
        elif change.command == "delete":
            self.groups.pop(change.group.group_id, None)
        else:
            self.groups[change.group.group_id] = change.group


def groups_of(rule: Rule) -> frozenset[int]:
    """Return the groups that a rule uses."""
    return frozenset(action.group_id for action in rule.actions if isinstance(action, ToGroup))


class ModelSession:
    """A connection; each of its methods takes a random number of turns, or finds it ended."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.lock = runtime.Lock()
        self.held: SwitchRules | None = None
        self.contents: SwitchContents | None = None
        self.probe_rules: frozenset[Rule] | None = None
        self.since_s = runtime.now_s()
        self.awaited = set[str]()
        self.is_being_read = False
        self.gone = False

    def wait(self) -> None:
        for _ in range(self.connection.rng.randrange(4)):
            runtime.sleep(0)
        if self.gone or not self.connection.is_open:
            raise SwitchGoneError("the connection is over")

    def rules(self) -> list[FoundRule]:
        self.wait()
        held = self.connection.switch.rules
        rules = [
            FoundRule(r.table, r.priority, r.match, r.cookie, r, groups_of(r))
            for r in held.values()
        ]
        unreadable = self.connection.switch.unreadable
        rules = [
            replace(r, rule=None)
            if r.cookie in unreadable or any(f.name.startswith(OTHER_FIELD) for f in r.match)
            else r
            for r in rules
        ]
        self.wait()
        return rules

    def read(self) -> SwitchContents:
        return SwitchContents(self.rules(), self.groups())

    def groups(self) -> list[FoundGroup]:
        self.wait()
        held = self.connection.switch.groups
        return [FoundGroup(number, group) for number, group in held.items()]

    def change(self, changes: tuple[Change, ...]) -> list[tuple[Change | None, str]]:
        refused = self.refused(changes)
        for change in changes:
            if self.connection.rng.random() < 0.1:
                self.wait()
            if (change, REFUSAL) not in refused:
                self.connection.switch.apply(change)
        self.wait()
        return refused

    def refused(self, changes: Iterable[Change]) -> list[tuple[Change | None, str]]:
        return [(change, REFUSAL) for change in changes if self.connection.switch.refuses(change)]

    def change_at_once(
        self, steps: Iterable[tuple[Change, ...]]
    ) -> list[tuple[Change | None, str]]:
        together = [change for step in steps for change in step]
        self.wait()
        refused = self.refused(together)
        for change in together if not refused else ():
            self.connection.switch.apply(change)
        self.wait()
        return refused

    def port_counters(self) -> dict[int, tuple[int, int]]:
        self.wait()
        switch = self.connection.switch
        return {port: switch.counters.get(port, (0, 0)) for port in switch.ports}

    def answers(self, _timeout_s: float) -> bool:
        try:
            self.wait()
        except SwitchGoneError:
            return False
        return True

    def end(self) -> None:
        self.gone = True


class Reports:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.drops: list[tuple[str, dict[str, Any]]] = []
        self.failed: list[str] = []
        self.installations = 0

    def tell(self, kind: str, **fields: Any) -> None:
        self.kinds.append(kind)
        if kind in ("dropping", "dropped"):
            self.drops.append((kind, fields))
        if kind == "failures":
            self.failed = fields["failed"]

    def installed(self, _changes: Changes, seconds: float) -> None:
        assert seconds >= 0
        self.installations += 1

    def changed(self, update: UpdatePlan, seconds: float) -> None:
        assert seconds >= 0
        assert update.change.proven
