"""Drawings for the site: fabrics, and the paths of an engine to one host."""

from __future__ import annotations

from collections import Counter

from knotless.drawing import fabric_svg
from knotless.results.plots import AMBER, BLUE, GREEN, RED
from knotless.routing.plan import make_plan
from knotless.topologies import load

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
        for hop in plan.path(source.name, host)[:-1]:
            used.setdefault((hop.switch, hop.out_port), Counter())[hop.priority] += 1
    colours = {
        channel: COLOURS[min(counted, key=lambda vc: (-counted[vc], vc)) % len(COLOURS)]
        for channel, counted in used.items()
    }
    highest = max((vc for counted in used.values() for vc in counted), default=0)
    return fabric_svg(plan.fabric, colours), highest + 1
