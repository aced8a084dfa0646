"""Faults of a run: drawn from its seed, each by its own identity, so that each can be left out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from knotless.forwarding.openflow.rules import COOKIE, Field, Group, Output, Rule
from knotless.topologies.numbering import mac_value
from tests.seeded.forwarding import rule_of
from tests.seeded.hub import Draws
from tests.seeded.switch import Switch, delete_group, entry_of, group_entry_of, keyed_entry_of

if TYPE_CHECKING:
    from tests.seeded.network import Link
    from tests.seeded.switch import SwitchConnection
    from tests.seeded.world import World

FIRST_S = 3.0
"""Time for the first rules to be installed."""
_GAP_S = (0.05, 4.0)
_SLOW_GAP_S = (0.005, 0.05)


@dataclass(frozen=True)
class Fault:
    """One fault: when it begins, after the start; of which kind; of what; and its numbers."""

    at_s: float
    kind: str
    targets: tuple[str, ...]
    seconds: float = 0.0
    count: int = 0

    def __str__(self) -> str:
        count = f", {self.count}" if self.count else ""
        return f"{self.kind} {' '.join(self.targets)} ({self.seconds:.4f} s{count})"


def faults_from(text: str) -> list[Fault]:
    """Read a list of faults."""
    return [Fault(**{**each, "targets": tuple(each["targets"])}) for each in json.loads(text)]


def faults_to(faults: Iterable[Fault]) -> str:
    """Write a list of faults."""
    return json.dumps([asdict(fault) for fault in faults], indent=1) + "\n"


# --- kinds -----------------------------------------------------------------------------------


def _cut(world: World, fault: Fault) -> None:
    """Cut a link for some time."""
    (name,) = fault.targets
    link = world.network.links[name]
    if not link.is_up:
        return

    def mend() -> None:
        world.network.set_link(name, up=True)
        world.say(f"mended {name}")
        world.judge.changed(f"mend of {name}")

    world.network.set_link(name, up=False)
    world.judge.changed(f"cut of {name}")
    world.later(fault.seconds, mend)


def _silent(world: World, fault: Fault) -> None:
    """Have a channel lose everything although there is a carrier."""
    switch, port = fault.targets
    end = (switch, int(port))
    link, _ = world.network.peers[end]
    link.silent.add(end)
    world.later(fault.seconds, link.silent.discard, end)


def _slow_frames(world: World, fault: Fault) -> None:
    """Have the frames of a host, of which there are many, stay long on every channel."""
    (host,) = fault.targets
    world.network.slow[host] += 1
    ends_s = world.hub.now_s + fault.seconds
    others = [each.name for each in world.fabric.hosts if each.name != host]

    def send() -> None:
        if world.hub.now_s < ends_s:
            world.network.inject(host, others[world.draws.below(len(others), "slow", host)])
            gap_s = world.draws.between(*_SLOW_GAP_S, "slow", host)
            world.hub.call_at(world.hub.now_s + gap_s, world.hub.outside, send)
        else:
            world.network.slow[host] -= 1

    send()


def _deafen(world: World, fault: Fault) -> None:
    """Have the pipeline of a switch stand still for some time; its connections live."""
    switch = world.switches[fault.targets[0]]
    switch.deafened += 1

    def hear() -> None:
        switch.deafened -= 1

    world.later(fault.seconds, hear)


def _disconnect(world: World, fault: Fault) -> None:
    """End a connection; both ends see it."""
    for connection in _connections(world, fault):
        connection.close()


def _lose_at_switch(world: World, fault: Fault) -> None:
    """End a connection at the switch; the controller does not see it."""
    for connection in _connections(world, fault):
        connection.close(told=False)


def _lose_at_controller(world: World, fault: Fault) -> None:
    """End a connection at the controller; the switch finds out by itself."""
    for connection in _connections(world, fault):
        connection.stream.end_up()
        connection.stream.is_deaf = True


def _connections(world: World, fault: Fault) -> list[SwitchConnection]:
    switch, controller = fault.targets
    found = world.switches[switch].connections
    return [each for each in found if each.controller.name == controller]


def _stall(world: World, fault: Fault) -> None:
    """Have a switch take no messages for some time."""
    (name,) = fault.targets
    world.switches[name].stalled_until_s = world.hub.now_s + fault.seconds


def _restart(world: World, fault: Fault) -> None:
    """Have a switch lose its power, and its rules; it comes back later."""
    _power_cycle(world, fault, lambda _key: False)


def _restart_with_rules(world: World, fault: Fault) -> None:
    """Have a switch lose its power; it comes back with its rules."""
    _power_cycle(world, fault, lambda _key: True)


def _power_cycle(world: World, fault: Fault, keeps: Callable[[bytes], bool]) -> None:
    (name,) = fault.targets
    switch = world.switches[name]
    if not switch.is_on:
        return

    def on() -> None:
        switch.switch_on(keeps)
        world.say(f"{name} has power again")
        for link in _links_of(world, switch):
            world.network.refresh(link)
        world.judge.changed(f"return of {name}")

    switch.switch_off()
    for link in _links_of(world, switch):
        world.network.refresh(link)
    world.judge.changed(f"power loss of {name}")
    world.later(fault.seconds, on)


def _links_of(world: World, switch: Switch) -> list[Link]:
    links = world.network.links.values()
    return [link for link in links if switch.name in {name for name, _ in link.ends}]


def _delete_rules(world: World, fault: Fault) -> None:
    """Have somebody delete rules of a switch: all, some, or those of a group with it."""
    switch, draws = world.switches[fault.targets[0]], Draws(fault.count)
    contents = switch.contents.copy()
    match draws.below(3, "what"):
        case 0:
            contents.flows.clear()
        case 1:
            share = draws.share("share")
            for key in list(contents.flows):
                if draws.share("entry") < share:
                    del contents.flows[key]
        case _:
            for number in list(contents.groups):
                if draws.share("group") < 0.5:
                    delete_group(contents, number)
    switch.touch(contents)


def _change_rules(world: World, fault: Fault) -> None:
    """Have somebody lead rules of ours to other ports, or empty groups."""
    switch, draws = world.switches[fault.targets[0]], Draws(fault.count)
    contents = switch.contents.copy()
    ports = list(switch.ports)
    for key, entry in list(contents.flows.items()):
        rule = rule_of(entry).rule
        if rule is None or rule.cookie != COOKIE or draws.share("entry") < 0.7:
            continue
        actions = tuple(
            Output(ports[draws.below(len(ports), "port")]) if isinstance(action, Output) else action
            for action in rule.actions
        )
        contents.flows[key] = entry_of(rule._replace(actions=actions))
    for number in list(contents.groups):
        if draws.share("group") < 0.3:
            contents.groups[number] = group_entry_of(Group(number, ()))
    switch.touch(contents)


def _add_rules(world: World, fault: Fault) -> None:
    """Have somebody add rules for the frames to some hosts, and delete them again."""
    switch, draws = world.switches[fault.targets[0]], Draws(fault.count)
    if not switch.is_on:
        return
    ports, hosts = list(switch.ports), world.fabric.hosts
    rules = []
    for number in range(1 + draws.below(3, "rules")):
        host = hosts[draws.below(len(hosts), "host", number)]
        out = (Output(ports[draws.below(len(ports), "port", number)]),)
        actions = out if draws.share("drop", number) < 0.7 else ()
        match = (Field("eth_dst", mac_value(host.mac)),)
        priority = 1 + draws.below(0xFFF0, "priority", number)
        rules.append(Rule(draws.below(4, "table", number), priority, match, actions, cookie=0xF0))
    contents = switch.contents.copy()
    entries = dict(map(keyed_entry_of, rules))
    contents.flows.update({key: each for key, each in entries.items() if key not in contents.flows})
    switch.touch(contents)

    def remove() -> None:
        left = switch.contents.copy()
        for key, entry in entries.items():
            if left.flows.get(key) == entry:
                del left.flows[key]
        switch.touch(left)

    world.later(fault.seconds, remove)


def _fill(world: World, fault: Fault) -> None:
    """Have the tables of a switch be full, or nearly so, for some time."""
    switch = world.switches[fault.targets[0]]
    switch.room = room = fault.count % (2 * len(switch.contents.flows) + 1)

    def make_room() -> None:
        if switch.room == room:
            switch.room = sys.maxsize

    world.later(fault.seconds, make_room)


def _impersonate(world: World, fault: Fault) -> None:
    """Have another switch say that it is one of the fabric, perhaps when that is not connected."""
    real, draws = world.switches[fault.targets[0]], Draws(fault.count)
    ports = [port for port in real.ports if draws.share("port") < 0.8 or fault.count % 2]
    world.impostors += 1
    real.twins += 1
    twin = Switch(world, f"twin{world.impostors}-{real.name}", real.dpid, ports)
    for controller in world.controllers.values():
        twin.connect(controller)
    if draws.share("blink") < 0.7:
        for connection in list(real.connections):
            connection.close()

    def leave() -> None:
        for connection in list(twin.connections):
            connection.close()
        twin.switch_off()
        real.twins -= 1
        real.counted_since_s = world.hub.now_s

    world.later(fault.seconds, leave)


def _kill(world: World, fault: Fault) -> None:
    """End a controller; it starts again later."""
    world.end(world.controllers[fault.targets[0]], fault.seconds)


def _kill_at_message(world: World, fault: Fault) -> None:
    """End a controller when it sends a message; it starts again later."""
    world.kill_at(world.controllers[fault.targets[0]], "send", fault.count, fault.seconds)


def _kill_at_write(world: World, fault: Fault) -> None:
    """End a controller when it writes a file; it starts again later."""
    world.kill_at(world.controllers[fault.targets[0]], "write", fault.count, fault.seconds)


def _damage_state(world: World, fault: Fault) -> None:
    """Cut the state file short, perhaps also the one before it, as a controller ends by a crash."""
    draws = Draws(fault.count)
    for name in ("state.json", *(("state-before.json",) if draws.share("both") < 0.3 else ())):
        if text := world.disk.get(name):
            world.disk[name] = text[: draws.below(len(text), name)]
            world.service.forget_requests()
    _kill(world, fault)


def _fill_disk(world: World, fault: Fault) -> None:
    """Have no controller be able to write a file for some time."""
    world.full_until_s = max(world.full_until_s, world.hub.now_s + fault.seconds)


def _hang(world: World, fault: Fault) -> None:
    """Suspend a controller for some time."""
    world.controllers[fault.targets[0]].hang(fault.seconds)


def _mute(world: World, fault: Fault) -> None:
    """Have emulator and Open vSwitch answer nothing for some time."""
    world.silent_until_s = world.hub.now_s + fault.seconds


def _part(world: World, fault: Fault) -> None:
    """Cut a switch off from a controller for some time; neither is told."""
    switch, controller = fault.targets
    world.cut_off.add((controller, switch))
    for connection in _connections(world, fault):
        connection.stream.is_cut = True

    def join() -> None:
        world.cut_off.discard((controller, switch))

    world.later(fault.seconds, join)


def _request(path: str, key: str) -> Callable[[World, Fault], None]:
    def perform(world: World, fault: Fault) -> None:
        for controller in world.controllers.values():
            body: dict[str, Any] = {
                key: list(fault.targets) if key == "parts" else fault.targets[0]
            }
            controller.request(path, body, world.token)

    return perform


def _change_groups(world: World, fault: Fault) -> None:
    """Request multicast groups, with an engine, of all controllers."""
    for controller in world.controllers.values():
        body = {"engine": fault.targets[0], "multicast": world.groups[fault.count]}
        controller.request("/change", body, world.token)


def _reload_groups(world: World, fault: Fault) -> None:
    """Configure multicast groups, and have all controllers reload."""
    for controller in world.controllers.values():
        controller.configure("multicast", json.dumps(world.groups[fault.count]))
        controller.reload()
    world.service.forget_requests()


def _reload_fabric(world: World, fault: Fault) -> None:
    """Configure the whole fabric, or another part of it, and have all controllers reload."""
    world.reload_fabric((world.fabric, *world.parts)[fault.count])


KINDS: Mapping[str, Callable[[World, Fault], None]] = {
    "cut": _cut,
    "flap": _cut,
    "silent": _silent,
    "slow-frames": _slow_frames,
    "disconnect": _disconnect,
    "lose-at-switch": _lose_at_switch,
    "lose-at-controller": _lose_at_controller,
    "stall": _stall,
    "restart": _restart,
    "restart-with-rules": _restart_with_rules,
    "rules-deleted": _delete_rules,
    "rules-changed": _change_rules,
    "rules-added": _add_rules,
    "full-table": _fill,
    "duplicate-dpid": _impersonate,
    "kill": _kill,
    "kill-at-message": _kill_at_message,
    "kill-at-write": _kill_at_write,
    "hang": _hang,
    "mute": _mute,
    "part": _part,
    "drain": _request("/drain", "parts"),
    "undrain": _request("/undrain", "parts"),
    "engine": _request("/change", "engine"),
    "state-damaged": _damage_state,
    "state-unwritable": _fill_disk,
    "deaf": _deafen,
    "groups": _change_groups,
    "groups-reloaded": _reload_groups,
    "fabric-reloaded": _reload_fabric,
}

_SECONDS: Mapping[str, tuple[float, float]] = {
    "cut": (0.5, 8),
    "flap": (0.001, 1),
    "silent": (0.3, 5),
    "slow-frames": (0.5, 5),
    "stall": (0.1, 4),
    "restart": (0.3, 6),
    "restart-with-rules": (0.3, 6),
    "rules-added": (0.5, 16),
    "full-table": (0.5, 16),
    "duplicate-dpid": (0.5, 16),
    "kill": (0.2, 5),
    "kill-at-message": (1, 6),
    "kill-at-write": (1, 6),
    "hang": (0.1, 5),
    "mute": (0.1, 12),
    "state-damaged": (0.2, 5),
    "state-unwritable": (0.5, 12),
    "part": (0.5, 8),
    "deaf": (0.5, 30),
}


def perform(world: World, fault: Fault) -> None:
    """Have a fault happen, and what ends it later."""
    world.say(f"FAULT {fault}")
    with world.concerned_by(fault.kind, fault.seconds):
        KINDS[fault.kind](world, fault)


def drawn(world: World, kinds: Sequence[str], seconds: float) -> list[Fault]:
    """Return the faults of a run, within so many seconds from the start."""
    draws = Draws(world.setting.seed)
    faults: list[Fault] = []
    at_s, number = FIRST_S, 0
    while True:
        number += 1
        at_s += draws.between(*_GAP_S, "gap", number)
        if at_s > seconds:
            return faults
        kind = kinds[draws.below(len(kinds), "kind", number)]
        low, high = _SECONDS.get(kind, (0.0, 0.0))
        # Short ones are as frequent as long ones.
        share = draws.share("seconds", number)
        length = low * (high / low) ** share if low else 0.0
        count = 1 + draws.below(60, "count", number) if kind == "kill-at-message" else 0
        if kind == "kill-at-write":
            count = 1 + draws.below(3, "count", number)
        if kind.startswith("rules-") or kind in ("full-table", "duplicate-dpid", "state-damaged"):
            count = draws.below(1 << 30, "count", number)
        if kind.startswith("groups"):
            count = draws.below(len(world.groups), "count", number)
        if kind == "fabric-reloaded":
            count = draws.below(1 + len(world.parts), "count", number)
        targets = _targets(world, draws, kind, number)
        faults.append(Fault(round(at_s, 6), kind, targets, round(length, 6), count))


def _targets(world: World, draws: Draws, kind: str, number: int) -> tuple[str, ...]:
    def one(names: Sequence[str], what: str) -> str:
        return names[draws.below(len(names), what, number)]

    switches, controllers = list(world.switches), list(world.controllers)
    links = list(world.network.links)
    match kind:
        case "cut" | "flap" | "drain" | "undrain":
            return (one(links, "link"),)
        case "silent":
            switch, port = sorted(world.network.peers)[
                draws.below(len(world.network.peers), "end", number)
            ]
            return (switch, str(port))
        case "disconnect" | "lose-at-switch" | "lose-at-controller" | "part":
            return (one(switches, "switch"), one(controllers, "controller"))
        case "stall" | "restart" | "restart-with-rules" | "deaf":
            return (one(switches, "switch"),)
        case "rules-deleted" | "rules-changed" | "rules-added" | "full-table" | "duplicate-dpid":
            return (one(switches, "switch"),)
        case "mute" | "state-unwritable":
            return ()
        case "slow-frames":
            return (one([host.name for host in world.fabric.hosts], "host"),)
        case "groups-reloaded" | "fabric-reloaded":
            return ()
        case "engine" | "groups":
            return (one(world.engines, "engine"),)
        case _:
            return (one(controllers, "controller"),)
