"""Runs whose faults are aimed at one kind of fault of a controller; the seed draws the rest."""

from __future__ import annotations

from random import Random

from knotless.controller import config
from knotless.routing.plan import make_plan
from knotless.routing.repair import repair
from knotless.topologies import load
from knotless.topologies.failures import Failures
from tests.seeded.faults import Fault
from tests.seeded.world import Setting

Run = tuple[Setting, list[Fault]]


def in_a_row(seed: int) -> Run:
    """Return cuts: one, one when the packets of its repair have left, and one after the return."""
    fabric = "mesh,3,3"
    first, second, third = _links(fabric, seed, 3)
    return Setting(seed, fabric, emulator=True), [
        *(Fault(6.0, "slow-frames", (host,), 60.0) for host in ("h1", "h5", "h9")),
        Fault(8.0, "cut", (first,), 60.0),
        Fault(20.0, "cut", (second,), 60.0),
        Fault(50.0, "cut", (third,), 10.0),
    ]


def parted(seed: int) -> Run:
    """Return a run in which most switches cannot reach any controller for longer than a lease.

    None of them is read meanwhile, which would end its connection.
    """
    setting = Setting(seed, "ring,4", controllers=2, options="reread_interval_s: 600")
    away = _rng(seed).sample(["s1", "s2", "s3", "s4"], k=3)
    return setting, [
        Fault(8.0, "part", (switch, controller), 12.0)
        for switch in away
        for controller in ("c1", "c2")
    ]


def usurped(seed: int) -> Run:
    """Return a run in which a switch without power forgets who led, and comes back.

    Meanwhile the second controller has taken the lead, of which the first one cannot hear, and its
    lease is not over.
    """
    rng = _rng(seed)
    setting = Setting(seed, "torus,3,3", controllers=2)
    names = [switch.name for switch in load(setting.fabric).switches]
    forgets = rng.choice(names)
    off_s = rng.uniform(4.5, 5.0)
    return setting, [
        *(Fault(5.5, "disconnect", (forgets, controller)) for controller in ("c1", "c2")),
        Fault(5.501, "restart", (forgets,), off_s),
        *(Fault(8.0, "part", (name, "c1"), 6.0) for name in names if name != forgets),
    ]


def tagged(seed: int) -> Run:
    """Return cuts of links which no routes can avoid with the tags that hosts go on using."""
    options = "tagging: host\nengine: updown\nvlans: tree\nsettle_s: 0"
    setting = Setting(seed, "mesh,3,3", options=options)
    links = _needing_other_tags(setting)
    return setting, [
        Fault(6.0 + 6.0 * number, "cut", (link,), _rng(seed).uniform(1.0, 2.0))
        for number, link in enumerate(_rng(seed).sample(links, k=len(links)))
    ]


def _needing_other_tags(setting: Setting) -> list[str]:
    fabric = load(setting.fabric)
    plan = make_plan(fabric, config.parse(setting.options))
    repairs = {
        link.name: repair(plan, Failures.from_names(fabric, [link.name])) for link in fabric.links
    }
    return [name for name, new in repairs.items() if new.plan.host_tags() != plan.host_tags()]


def bouncing(seed: int) -> Run:
    """Return links that fail again soon after they have returned, where no probes are sent."""
    setting = Setting(seed, "ring,4", options="discovery: none\nsettle_s: 0")
    first, second = _links(setting.fabric, seed, 2)
    rng = _rng(seed)
    return setting, [
        each
        for link, at_s in ((first, 6.0), (second, 24.0))
        for each in (
            Fault(at_s, "cut", (link,), 2.0),
            Fault(at_s + 2.0 + rng.uniform(0.1, 0.9), "cut", (link,), 8.0),
        )
    ]


def reloaded(seed: int) -> Run:
    """Return reloads of other parts of a fabric, in the midst of which the controller dies."""
    rng = _rng(seed)
    faults = []
    for at_s, number in ((6.0, 2), (12.0, 0), (18.0, 1), (24.0, 0)):
        faults.append(Fault(at_s, "fabric-reloaded", (), count=number))
        faults.append(Fault(at_s + rng.uniform(0.01, 0.3), "kill", ("c1",), 1.0))
    return Setting(seed, "ring,4", emulator=True), [*_slow("ring,4", 26.0), *faults]


def crowded(seed: int) -> Run:
    """Return changes of routes one after the other while frames of all hosts stay long."""
    rng = _rng(seed)
    setting = Setting(seed, "ring,4")
    faults, at_s = _slow(setting.fabric, 30.0), 6.0
    links = [link.name for link in load(setting.fabric).links]
    for number in range(10):
        if number % 2:
            faults.append(Fault(at_s, "flap", (rng.choice(links),), rng.uniform(0.05, 0.5)))
        else:
            faults.append(Fault(at_s, "engine", (("updown", "dor")[number // 2 % 2],)))
        at_s += rng.uniform(0.2, 2.5)
    return setting, faults


def taking_turns(seed: int) -> Run:
    """Return engines and cuts while two controllers hang in turn, so that the other one leads."""
    setting = Setting(seed, "torus,3,3", controllers=2)
    cut = _links(setting.fabric, seed, 6)
    faults = []
    for number, link in enumerate(cut):
        at_s, hangs = 6.0 + 4.0 * number, f"c{1 + number % 2}"
        faults.append(Fault(at_s, "hang", (hangs,), 3.9))
        faults.append(Fault(at_s + 2.5, "cut", (link,), 6.0))
        faults.append(Fault(at_s + 3.0, "engine", (("updown", "dor")[number % 2],)))
    return setting, faults


def stalling(seed: int) -> Run:
    """Return cuts beside each of which a switch takes no messages for a while."""

    rng = _rng(seed)
    setting = Setting(seed, "ring,4", options="settle_s: 0")
    fabric, faults = load(setting.fabric), []
    for number in range(7):
        at_s = 6.0 + 3.4 * number
        for stalls_s in (at_s - 0.01, at_s + 1.19):
            faults.append(Fault(stalls_s, "stall", (rng.choice(fabric.switches).name,), 1.0))
        faults.append(Fault(at_s, "cut", (rng.choice(fabric.links).name,), 1.2))
    return setting, faults


def impersonated(seed: int) -> Run:
    """Return other engines, before each of which another switch has taken the place of one."""
    rng = _rng(seed)
    faults = []
    for number in range(6):
        at_s, switch = 6.0 + 4.0 * number, f"s{1 + rng.randrange(4)}"
        faults.append(Fault(at_s, "duplicate-dpid", (switch,), 3.0, 1 + 2 * rng.randrange(99)))
        faults.append(Fault(at_s + 1.0, "engine", (("updown", "dor")[number % 2],)))
    return Setting(seed, "ring,4"), faults


def flapping(seed: int) -> Run:
    """Return links that fail and return all the time while frames of all hosts stay long."""
    rng = _rng(seed)
    setting = Setting(seed, "ring,4", options="settle_s: 0")
    links = [link.name for link in load(setting.fabric).links]
    times_s = (6.0 + 0.5 * number + rng.uniform(0, 0.4) for number in range(40))
    flaps = [Fault(at_s, "flap", (rng.choice(links),), rng.uniform(0.05, 0.3)) for at_s in times_s]
    return setting, [*_slow(setting.fabric, 30.0), *flaps]


def emptied(seed: int) -> Run:
    """Return a controller that starts again, and a switch that loses its rules and connection."""
    rng = _rng(seed)
    switch = rng.choice(("s1", "s2", "s3", "s4"))
    return Setting(seed, "ring,4"), [
        Fault(6.0, "kill", ("c1",), 0.5),
        Fault(10.0, "rules-deleted", (switch,), count=rng.randrange(1 << 30)),
        Fault(10.0, "disconnect", (switch, "c1")),
    ]


def cut_twice(seed: int) -> Run:
    """Return two cuts while frames of all hosts stay long."""
    setting = Setting(seed, "torus,3,3", emulator=True)
    links = _links(setting.fabric, seed, 2)
    cuts = [
        Fault(at_s, "cut", (link,), 20.0) for at_s, link in zip((8.0, 16.0), links, strict=True)
    ]
    return setting, [*_slow(setting.fabric, 24.0), *cuts]


def _slow(fabric: str, seconds: float) -> list[Fault]:
    return [Fault(4.0, "slow-frames", (host.name,), seconds) for host in load(fabric).hosts]


def _rng(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - repeatable


def _links(fabric: str, seed: int, count: int) -> list[str]:
    return _rng(seed).sample([link.name for link in load(fabric).links], k=count)
