"""Lab 5: up*/down* on paper, and as an engine in a file of the student's."""

from __future__ import annotations

from collections.abc import Iterator

from knotless.base.counting import counted
from knotless.lab_checks.lab import Lab, Work
from knotless.lab_checks.proofs import plan_with_engine, verdict_of_plan, wrong_verdict
from knotless.routing.graphs.channels import channels_of
from knotless.routing.graphs.spanning_tree import spanning_tree
from knotless.routing.plan import Plan
from knotless.topologies import load

PAPER = "random,6,degree=3,hosts=1"
SPECS = (PAPER, "mesh,3,3", "torus,4,4", "random,12,degree=3,seed=5")
ENGINE = "my_updown.py"
ROOT = 0


def levels(work: Work) -> Iterator[str]:
    """The levels that the student has found on paper."""
    fabric = load(PAPER)
    tree = spanning_tree(channels_of(fabric), ROOT)
    answers = work.answers.mapping("levels", "{s1: 0}")
    names = fabric.switch_index
    if missing_switches := [name for name in names if name not in answers]:
        yield work.answers.wrong("levels", f"missing are {', '.join(missing_switches)}")
    for switch, level in zip(fabric.switches, tree.level.tolist(), strict=True):
        given = answers.get(switch.name)
        if given is not None and given != level:
            yield work.answers.wrong("levels", f"{switch.name} is not on level {given}")


def directions(work: Work) -> Iterator[str]:
    """The upper ends that the student has found on paper."""
    fabric = load(PAPER)
    tree, names = spanning_tree(channels_of(fabric), ROOT), fabric.switch_index
    upper = work.answers.mapping("upper_end", "{s1-s2: s1}")
    for text, end in upper.items():
        ends = text.split("-")
        if len(ends) != 2 or not set(ends) <= set(names):
            yield work.answers.wrong("upper_end", f"{text}: write a link as s1-s2")
            continue
        if end != min(ends, key=lambda name: (tree.level[names[name]], names[name])):
            yield work.answers.wrong("upper_end", f"{text}: the upper end is not {end}")
    links = {frozenset((link.a, link.b)) for link in fabric.links}
    missing = links - {frozenset(text.split("-")) for text in upper}
    if missing:
        first = min("-".join(sorted(link)) for link in missing)
        yield work.answers.wrong(
            "upper_end", f"{counted(len(missing), 'links')} missing, such as {first}"
        )


def engine(work: Work) -> Iterator[str]:
    """The engine delivers everything, cannot deadlock, and never goes up after down."""
    path = work.path(ENGINE)
    for spec in SPECS:
        plan = plan_with_engine(path, load(spec))
        yield from wrong_verdict(verdict_of_plan(plan), f"{work.shown(ENGINE)} on {spec}")
        yield from _up_after_down(work.shown(ENGINE), plan)


def _up_after_down(file: str, plan: Plan) -> Iterator[str]:
    """Yield a line for the first path that goes up after it went down."""
    fabric, channels = plan.fabric, plan.channels
    rises = spanning_tree(channels, ROOT).rises().tolist()
    for row, of_host in enumerate(plan.row_switch.tolist()):
        for target in range(len(fabric.switches)):
            up = [rises[channel] for channel, _ in plan.routes.path(row, target)]
            if up != sorted(up, reverse=True):
                names = channels.names
                yield (
                    f"{file} on {fabric.name}: the path from {names[of_host]} to {names[target]}"
                    " goes up after it went down"
                )
                return


LAB = Lab(5, "up-down", (levels, directions, engine))
