"""The rules and controllers that send frames on in a loop, asked of Open vSwitch on demand.

The emulator knows by which channels a frame went, and how it looked there. Each Open vSwitch then
follows such a frame through its rules (``ofproto/trace`` of ovs-vswitchd(8), which sends nothing).
If they do not forward it to the next channel of the loop, a controller has sent it on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from knotless.base.errors import EmulationError
from knotless.emulation import health
from knotless.emulation.health import Question
from knotless.emulation.interface_names import interface_names
from knotless.emulation.names import Names
from knotless.topologies.fabric import Fabric

MOST_STEPS = 64
"""Switches of all loops that are asked."""
_PORT = re.compile(r"\s+\S+ (\d+)/(\d+): ")
"""A port of ``dpif/show``: its number in OpenFlow, and in the datapath."""
_RULE = re.compile(r"\s*(\d+)\. (?:(.*), )?priority (\d+)(?:, cookie (0x[0-9a-f]+))?$")
_ACTION_SET = "--. "
_TO_ANY = re.compile(r"\b(?:FLOOD|ALL|NORMAL|IN_PORT|group:\d+)\b")
_NESTED = re.compile(r"\b(?!clone\b)\w+\([^()]*\)")
"""What a datapath action does inside of it; ``clone`` forwards."""

Loops = Sequence[Mapping[str, Any]]
Hops = Sequence[Sequence[Mapping[str, Any]]]
Reasons = Mapping[tuple[str, ...], list[dict[str, Any]]]
"""``sent_on`` by the channels of a loop."""


@dataclass(frozen=True)
class _Step:
    """A frame of a loop that a switch has got, and the channel by which it went on."""

    loop: tuple[str, ...]
    switch: str
    port: int
    frame: str
    to: str


@dataclass
class _Traced:
    """A rule that a frame has matched, and the actions that followed."""

    table: int
    match: str
    priority: int
    cookie: str
    actions: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "match": self.match,
            "priority": self.priority,
            "cookie": self.cookie,
        }

    def does(self, pattern: str | re.Pattern[str]) -> bool:
        return any(re.search(pattern, action) for action in self.actions)


def find_reasons(
    names: Names, fabric: Fabric, loops: Loops, hops: Hops, pids: Mapping[str, int]
) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Return what sends frames on in each loop that is present.

    Parameters
    ----------
    names, fabric : Names, Fabric
        The running fabric.
    loops, hops : sequence
        ``loops`` of the emulator's ``status``, and of its answer to ``loops``.
    pids : mapping
        The processes of Open vSwitch that answer, by role.

    Returns
    -------
    dict
        By the channels of a loop, a list with an entry for each switch that has answered:
        ``switch``; ``to``, the channel of the loop on which it sends frames; ``by``, "rule" or
        "controller"; ``rule``, that rule or the one by which the controller gets them, with
        ``table match priority cookie``, or None: no rule does that now.

    """
    # A loop that was found between the two answers has no frame yet.
    present = {tuple(loop["channels"]) for loop in loops if loop["present"]}
    steps = [*islice((step for step in _steps(hops) if step.loop in present), MOST_STEPS)]
    if not steps:
        return {}
    bridges = interface_names(fabric)
    questions = {
        role: Question(pid, partial(_follow, _commands(names, pid), bridges, steps))
        for role, pid in pids.items()
    }
    answers = health.ask_all(questions)
    by_step = {step: reason for one in answers.values() for step, reason in one.value or ()}
    reasons: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for step in steps:
        if step in by_step:
            reasons.setdefault(step.loop, []).append(by_step[step])
    return reasons


def with_reasons(status: dict[str, Any], reasons: Reasons) -> dict[str, Any]:
    """Return the emulator's ``status`` in which loops have ``sent_on``, as far as it is known."""
    loops = [
        {**loop, "sent_on": reasons.get(tuple(loop["channels"]), [])}
        for loop in status.get("loops", ())
    ]
    return {**status, "loops": loops}


def _steps(hops: Hops) -> Iterator[_Step]:
    for loop in hops:
        channels = tuple(hop["channel"] for hop in loop)
        for hop, to in zip(loop, [*channels[1:], *channels[:1]], strict=True):
            if hop["switch"] is not None:
                yield _Step(channels, hop["switch"], hop["port"], hop["frame"], to)


def _commands(names: Names, pid: int) -> Callable[..., str]:
    """Return a function that has an ovs-vswitchd perform a command, as ``ovs-appctl`` does."""
    path = names.ovs_directory / f"ovs-vswitchd.{pid}.ctl"

    def command(method: str, *arguments: str) -> str:
        answer = health.json_rpc(path, method, arguments)
        if not isinstance(answer, str):
            raise EmulationError(f"{path.name} answers {method} without text")
        return answer

    return command


def _follow(
    command: Callable[..., str], bridges: Mapping[str, str], steps: Sequence[_Step]
) -> list[tuple[_Step, dict[str, Any]]]:
    """Follow frames through the switches of one process; raises :class:`EmulationError`."""
    ports = _datapath_ports(command("dpif/show"))
    reasons = []
    for step in steps:
        bridge = bridges[step.switch]
        if bridge in ports:
            trace = command("ofproto/trace", bridge, f"in_port={step.port}", step.frame)
            reasons.append((step, _reason(step, trace, ports[bridge])))
    return reasons


def _datapath_ports(text: str) -> dict[str, dict[int, int]]:
    """Return the number in the datapath of each port, by bridge, of ``dpif/show``."""
    bridges: dict[str, dict[int, int]] = {}
    ports: dict[int, int] = {}
    for line in text.splitlines():
        if match := _PORT.match(line):
            ports[int(match[1])] = int(match[2])
        elif line.startswith("  ") and line.endswith(":"):
            ports = bridges.setdefault(line.strip()[:-1], {})
    return bridges


def _reason(step: _Step, trace: str, ports: Mapping[int, int]) -> dict[str, Any]:
    switch, _, port = step.to.rpartition(":")
    forwards = switch == step.switch and ports.get(int(port)) in _outputs(trace)
    rules = [*_traced(trace)]
    rule = _forwarding(rules, int(port)) if forwards else _informing(rules)
    return {
        "switch": step.switch,
        "to": step.to,
        "by": "rule" if forwards else "controller",
        "rule": None if rule is None else rule.as_json(),
    }


def _outputs(trace: str) -> set[int]:
    """Return the ports of the datapath to which a frame goes."""
    outputs = set[int]()
    for line in trace.splitlines():
        actions = line.removeprefix("Datapath actions: ")
        if actions == line:
            continue
        while (rest := _NESTED.sub("_", actions)) != actions:
            actions = rest
        outputs.update(int(word) for word in re.split(r"[(),]", actions) if word.isdecimal())
    return outputs


def _traced(trace: str) -> Iterator[_Traced]:
    """Yield the rules that a frame has matched, in their order, with their actions."""
    rules: list[_Traced] = []
    current: _Traced | None = None
    for line in trace.splitlines():
        if match := _RULE.match(line):
            current = _Traced(int(match[1]), match[2] or "", int(match[3]), match[4] or "0x0")
            rules.append(current)
        elif line.startswith(_ACTION_SET):
            writers = [rule for rule in rules if rule.does("write_actions")]
            current = writers[-1] if writers else current
        elif line.startswith(" ") and current is not None:
            current.actions.append(line.strip())
        else:
            current = None if line.startswith("Final flow") else current
    yield from rules


def _forwarding(rules: Sequence[_Traced], port: int) -> _Traced | None:
    """Return the rule that outputs to a port: the last one that names it, else that floods."""
    for pattern in (re.compile(rf"\boutput:{port}\b"), _TO_ANY):
        for rule in reversed(rules):
            if rule.does(pattern):
                return rule
    return rules[-1] if rules else None


def _informing(rules: Sequence[_Traced]) -> _Traced | None:
    """Return the rule by which a controller gets the frame."""
    return next((rule for rule in reversed(rules) if rule.does("CONTROLLER")), None)
