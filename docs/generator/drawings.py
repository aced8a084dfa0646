"""Drawings for the site: fabrics, and the paths of an engine to one host."""

from __future__ import annotations

from collections import Counter

import numpy as np

from knotless.drawing import fabric_svg
from knotless.results.plots import AMBER, BLUE, GREEN, RED
from knotless.routing.choices.source_choices import SourceChoices
from knotless.routing.plan import Plan, make_plan
from knotless.topologies import Host, load

COLOURS = (BLUE, AMBER, GREEN, RED, "#7b4fa3", "#20929e", "#8c6d31", "#c2559d")
"""The colour of each virtual channel."""
COLOUR_NAMES = ("blue", "amber", "green", "red", "violet", "teal", "brown", "pink")


def fabric(spec: str) -> str:
    """Return the drawing of a fabric."""
    return fabric_svg(load(spec))


def cycle(spec: str, **options: object) -> str:
    """Return the drawing of a fabric with the cycle of a plan in red."""
    import knotless as kn

    svg: str = kn.draw(kn.plan(spec, **options)).svg
    return svg


def _hops(plan: Plan, source: Host, host: str) -> list[tuple[str, int, int]]:
    """Return (switch, output port, priority) on the path to a host.

    Of an adaptive plan they are all choices at the switch of the source; where first switches
    choose a path, those of all paths.
    """
    if isinstance(plan.choice, SourceChoices):
        return _hops_of_choices(plan, plan.choice, source, host)
    if plan.next_hops is None:
        return [
            (hop.switch, hop.out_port, hop.priority) for hop in plan.path(source.name, host)[:-1]
        ]
    index, channels = plan.fabric.switch_index, plan.channels
    to_switch = plan.fabric.hosts[plan.fabric.host_index[host]].switch
    choices = plan.next_hops.hops_at(index[source.switch], index[to_switch])
    return [(source.switch, int(channels.out_port[channel]), vc) for channel, vc in choices]


def _hops_of_choices(
    plan: Plan, choices: SourceChoices, source: Host, host: str
) -> list[tuple[str, int, int]]:
    index, channels = plan.fabric.switch_index, plan.channels
    at, to = index[source.switch], index[plan.fabric.hosts[plan.fabric.host_index[host]].switch]
    over = np.array([-1, *choices.between(at, to)], dtype=np.int32)
    ends = np.full_like(over, at), np.full_like(over, to)
    return [
        (channels.names[channels.tail[channel]], int(channels.out_port[channel]), vc)
        for taken, vcs in choices.tables.hops(channels, *ends, over)
        for channel, vc in zip(taken.tolist(), vcs.tolist(), strict=True)
        if channel >= 0
    ]


def paths_to(spec: str, engine: str, host: str) -> tuple[str, int]:
    """Return a drawing of all paths to a host, and the number of virtual channels in it.

    A channel has the colour of the virtual channel on which most of these paths use it.
    """
    plan = make_plan(load(spec), engine)
    used: dict[tuple[str, int], Counter[int]] = {}
    to_switch = plan.fabric.hosts[plan.fabric.host_index[host]].switch
    for source in plan.fabric.hosts:
        if source.switch == to_switch:
            continue
        for switch, out_port, priority in _hops(plan, source, host):
            used.setdefault((switch, out_port), Counter())[priority] += 1
    colours = {
        channel: COLOURS[min(counted, key=lambda vc: (-counted[vc], vc)) % len(COLOURS)]
        for channel, counted in used.items()
    }
    highest = max((vc for counted in used.values() for vc in counted), default=0)
    return fabric_svg(plan.fabric, colours), highest + 1
