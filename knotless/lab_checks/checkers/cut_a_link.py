"""Lab 6: a link is cut, the routes are repaired, and nothing can deadlock on the way."""

from __future__ import annotations

from collections.abc import Iterator

from knotless.base.errors import KnotlessError
from knotless.lab_checks.lab import Lab, TodoError, Work, each_of
from knotless.lab_checks.proofs import wrong_verdict
from knotless.lab_checks.running import live_verdict, status_of
from knotless.routing.plan import Plan, make_plan
from knotless.routing.repair import repair
from knotless.topologies import load
from knotless.topologies.failures import Failures

SPEC = "mesh,3,2"


def paths(work: Work) -> Iterator[str]:
    """The paths before and after the cut, as planned."""
    intact, repaired, ends = _plans(work)
    for key, plan in (("before", intact), ("after", repaired)):
        yield from each_of(_passed(work, key, plan, ends))
    if _switches(intact, ends) == _switches(repaired, ends):
        problem = f"frames from {ends[0]} to {ends[1]} do not use this link: choose other hosts"
        yield work.answers.wrong("link", problem)


def _passed(work: Work, key: str, plan: Plan, ends: tuple[str, str]) -> Iterator[str]:
    answers = work.answers.texts(key)
    if answers != _switches(plan, ends):
        problem = f"frames from {ends[0]} to {ends[1]} do not pass {', '.join(answers)}"
        yield work.answers.wrong(key, problem)


def _plans(work: Work) -> tuple[Plan, Plan, tuple[str, str]]:
    """Return the plan, the repaired plan and the pair of hosts of the student's choice."""
    answers = work.answers
    ends = (answers.text("from"), answers.text("to"))
    link = answers.text("link")
    plan = make_plan(load(SPEC), "dor")
    try:
        repaired = repair(plan, Failures.from_names(plan.fabric, [link])).plan
        for one in (plan, repaired):
            one.path(*ends)
    except KnotlessError as problem:
        raise TodoError(f"{answers.file}: {problem}") from problem
    return plan, repaired, ends


def _switches(plan: Plan, ends: tuple[str, str]) -> list[str]:
    return [hop.switch for hop in plan.path(*ends)]


def repaired(work: Work) -> Iterator[str]:
    """The link of the answer is cut in the running fabric, whose switches have new routes."""
    status = status_of(work, SPEC)
    ends = set(work.answers.text("link").split("-"))
    cut = status["cut"] or []
    if not any({end.partition(":")[0] for end in one["link"].split("-")} == ends for one in cut):
        yield f"{work.answers.text('link')} is not cut in the running fabric: knotless cut LINK"
        return
    if not status["controller"]["ready"]:
        yield "the controller is still busy with the new routes: run this command again"
        return
    state, verdict = live_verdict(work)
    yield from wrong_verdict(verdict, "the running switches")
    source, target = work.answers.text("from"), work.answers.text("to")
    channels = state.channels
    links = [hop.channel for hop in state.trace(source, target).hops if hop.channel < len(channels)]
    passed = [channels.names[channels.tail[link]] for link in links]
    passed += [channels.names[channels.head[link]] for link in links[-1:]]
    if passed != work.answers.texts("after"):
        problem = f"frames from {source} to {target} pass {', '.join(passed)} in the running fabric"
        yield work.answers.wrong("after", problem)


LAB = Lab(6, "cut-a-link", (paths,), (repaired,))
