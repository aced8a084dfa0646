"""``knotless help``: where to begin, and what a topic has to choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import click

from knotless.base.counting import counted
from knotless.base.errors import KnotlessError
from knotless.cli import complete
from knotless.cli.answer import Answer, Group, Headline, Several, print_answer
from knotless.cli.groups import GROUPS, commands, suggestion

KINDS = {title.lower(): group for title, group in GROUPS.items() if title.lower() not in commands()}
"""Groups of commands as topics."""
BEGIN: Mapping[str, Mapping[str, str]] = {
    "without root": {
        "can routes deadlock?": "knotless plan torus,4,4",
        "which engine fits?": "knotless advise torus,4,4",
        "see a fabric freeze": "knotless simulate ring,4 --engine dor --vcs 1 --select low-port"
        " --pattern shift:2",
        "can mine deadlock?": "knotless check FOLDER",
        "the main experiment": "knotless run deadlock --quick --on simulation",
    },
    "with root, on Open vSwitch": {
        "start a fabric": "knotless up torus,4,4",
        "use it": "knotless attach",
        "see how it is": "knotless status",
        "end it": "knotless down",
    },
    "explained": {
        "a command": "knotless help plan",
        "what SPEC can be": "knotless help fabrics",
        "what to choose from": "knotless help engines, or patterns",
        "commands of a kind": f"knotless help {', '.join(KINDS)}",
    },
}
"""Questions, each with the command that answers it."""


@click.command(name="help")
@click.argument("topic", required=False, shell_complete=complete.choices(commands()))
@click.pass_context
def command(context: click.Context, topic: str | None) -> None:
    """Say where to begin; or explain TOPIC: a command, fabrics, engines, patterns, or a group.

    Example: knotless help

    Example: knotless help fabrics
    """
    if topic is None:
        groups = [Group(title, questions) for title, questions in BEGIN.items()]
        answer = Answer(Headline("knotless", "begin here"), details=groups)
        print_answer(answer, details=True)
    elif topic in commands():
        _print_help(context, topic)
    else:
        print_answer(_topic(topic.lower()))


def _print_help(context: click.Context, name: str) -> None:
    """Print what ``--help`` of a command does."""
    parent = context.parent
    group = parent.command if parent is not None else None
    explained = group.get_command(context, name) if isinstance(group, click.Group) else None
    if explained is None:
        raise KnotlessError(f"there is no command {name!r}")
    explained.main(["--help"], prog_name=f"knotless {name}", standalone_mode=False)


def _topic(topic: str) -> Answer:
    if topic in TOPICS:
        return TOPICS[topic]()
    if topic in KINDS:
        return _listed(topic, "commands", KINDS[topic].items())
    topics = [*TOPICS, *KINDS]
    text = suggestion(topic, [*topics, *commands()]) or f"; topics are {', '.join(topics)}"
    raise KnotlessError(f"there is no topic or command {topic[:40]!r}{text}")


def _listed(topic: str, things: str, rows: Iterable[tuple[str, str]]) -> Answer:
    """Return a line for each thing: its name, and what it is."""
    pairs = [*rows]
    width = max(len(name) for name, _ in pairs)
    lines = [f"{name:{width}}  {text}" for name, text in pairs]
    headline = Headline(topic, counted(len(lines), things))
    return Answer(headline, why=[Several(lines, things, len(lines))])


def _fabrics() -> Answer:
    from knotless.topologies.registry import families

    rows = ((family.usage, family.summary) for family in families().values())
    return _listed("fabrics", "families", rows)


def _engines() -> Answer:
    from knotless.routing.engine import engines

    return _listed("engines", "engines", ((one.name, one.summary) for one in engines().values()))


def _patterns() -> Answer:
    from knotless.traffic.patterns import patterns

    return _listed("patterns", "patterns", ((one.name, one.summary) for one in patterns().values()))


TOPICS: Mapping[str, Callable[[], Answer]] = {
    "fabrics": _fabrics,
    "engines": _engines,
    "patterns": _patterns,
}
"""What SPEC, ``--engine`` and ``--pattern`` can be; each loads what it lists."""
