"""Lab 8: a barrier in rounds, and two barriers measured in simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from knotless.base.counting import counted
from knotless.lab_checks.lab import Answers, Lab, TodoError, Work, each_of
from knotless.results import results

HOSTS = 8
MESSAGES = "rounds.yaml"
PROGRAMS = ("shuffle", "concurrent")
Round = Sequence[tuple[int, int]]


def rounds(work: Work) -> Iterator[str]:
    """Nobody can leave before all have arrived, and no smaller number of rounds would do."""
    answers = Answers.read(work, MESSAGES)
    given = [_round(answers, number, raw) for number, raw in enumerate(answers.list("rounds"), 1)]
    least = (HOSTS - 1).bit_length()
    heard = [{host} for host in range(HOSTS)]
    for number, messages in enumerate(given, 1):
        for what, ends in (("sends", 0), ("receives", 1)):
            every = [message[ends] + 1 for message in messages]
            if twice := sorted({host for host in every if every.count(host) > 1}):
                yield answers.wrong(f"round {number}", f"host {twice[0]} {what} twice")
        before = [set(sources) for sources in heard]
        for source, target in messages:
            heard[target] |= before[source]
    for host, sources in enumerate(heard):
        if missing := sorted(set(range(HOSTS)) - sources):
            problem = f"host {host + 1} can leave before host {missing[0] + 1} has arrived"
            yield answers.wrong("rounds", problem)
            break
    if len(given) > least:
        yield answers.wrong("rounds", f"{counted(len(given), 'rounds')}; fewer are enough")


def _round(answers: Answers, number: int, raw: object) -> Round:
    """Return the messages of a round, hosts from 0; raises TodoError."""
    if not isinstance(raw, list):
        raise TodoError(answers.wrong(f"round {number}", "must be a list such as [[1, 2], ..]"))
    for message in raw:
        hosts = message if isinstance(message, list) else []
        if len(hosts) != 2 or any(host not in range(1, HOSTS + 1) for host in hosts):
            problem = f"must contain messages such as [1, 2] between hosts 1 to {HOSTS}"
            raise TodoError(answers.wrong(f"round {number}", problem))
    return [(source - 1, target - 1) for source, target in raw]


def least(work: Work) -> Iterator[str]:
    """The answers on the least number of rounds for other numbers of hosts."""
    yield from each_of(*(_least_for(work, hosts) for hosts in (9, 32)))


def _least_for(work: Work, hosts: int) -> Iterator[str]:
    key = f"rounds_for_{hosts}_hosts"
    given = work.answers.number(key)
    if not 0 <= given <= HOSTS * HOSTS or 2 ** (given - 1) >= hosts:
        yield work.answers.wrong(key, "fewer are enough" if given > 0 else "must be above 0")
    elif 2**given < hosts:
        problem = f"after {given} rounds a host has heard of at most {2**given} hosts"
        yield work.answers.wrong(key, problem)


def measured(work: Work) -> Iterator[str]:
    """The answers agree with the student's own results folder."""
    folder = work.path(work.answers.text("results"))
    run, _ = results.read(folder)
    if run["experiment"] != "barrier":
        problem = f"{folder.name} has results of {run['experiment']}, not of barrier"
        raise TodoError(work.answers.wrong("results", problem))
    means = {(row["fabric"], row["algorithm"]): row["mean_us"] for row in run["rows"]}
    for fabric, key in (("flat,16", "faster_on_a_switch"), ("hub,16", "faster_on_a_hub")):
        by_program = {name: means[fabric, name] for name in PROGRAMS if (fabric, name) in means}
        if len(by_program) < len(PROGRAMS):
            problem = f"{folder.name} lacks {' or '.join(PROGRAMS)} on {fabric}: see step 3"
            yield work.answers.wrong("results", problem)
            continue
        yield from each_of(_faster(work, key, by_program))


def _faster(work: Work, key: str, means_us: Mapping[str, float]) -> Iterator[str]:
    answer = work.answers.text(key)
    if answer != min(means_us, key=lambda name: means_us[name]):
        times = ", ".join(f"{name} {mean:.1f} us" for name, mean in means_us.items())
        yield work.answers.wrong(key, f"not {answer}: your run measured {times}")


LAB = Lab(8, "barriers", (rounds, least, measured))
