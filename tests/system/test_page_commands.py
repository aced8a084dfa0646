"""Every `knotless` command in a block on a page runs, or is listed with the test that runs it.

The build of the site runs the blocks marked `sh run` (test_site.py).
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import click
import pytest
import yaml

from docs.generator.shell import BLOCK, Shell
from knotless.cli.main import main
from tests.support import REPOSITORY
from tests.support.every import holds_for_every

LIST = yaml.safe_load((REPOSITORY / "tests" / "data" / "page_commands.yaml").read_text())
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
COMMAND = re.compile(r"(?:sudo )?(?:\S*/)?knotless [a-z].*")
STATUSES = {"check": {0, 1}, "plan": {0, 1}, "simulate": {0, 3}}
"""Exit statuses of commands that work: a cycle or deadlock may be what a page shows."""
LAB = "topology:\n  nodes: {a: {}, b: {}}\n  links:\n  - endpoints: ['a:e1-1', 'b:e1-1']\n"
GRAPH = '<graphml><graph edgedefault="undirected"><node id="a"/></graph></graphml>'


def commands(page: Path) -> list[str]:
    """Return the commands in the blocks of a page, except those that the site runs."""
    text = BLOCK.sub(lambda block: "" if " run" in block[2] else block[0], page.read_text())
    fenced, joined, lines = False, "", []
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            joined += line.split(" # ")[0].strip()
            if joined.endswith("\\"):
                joined = joined.removesuffix("\\")
                continue
            if COMMAND.fullmatch(joined):
                lines.append(joined)
            joined = ""
    return lines


EVERY = {command: page for page in PAGES for command in commands(page)}


def listed(command: str) -> bool:
    return any(re.fullmatch(row["commands"], command) for row in LIST)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Return a shell in a folder with what the pages take for granted."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "my.graphml").write_text(GRAPH)
    (folder / "lab.clab.yml").write_text(LAB)
    (folder / "cables.csv").write_text("a,a_port,b,b_port\ns1,1,s2,1\n")
    (folder / "graph.json").write_text(
        '{"nodes": [{"id": "a"}, {"id": "b"}], "links": [{"source": "a", "target": "b"}]}'
    )
    (folder / "sizes.csv").write_text("bytes,probability\n0,0\n1000,0.5\n20000,1\n")
    for page, name in (("switch-settings.md", "switch.yaml"), ("transports.md", "ecn.yaml")):
        text = (REPOSITORY / "docs" / page).read_text()
        (folder / name).write_text(text.split("```yaml\n")[1].split("```")[0])
    (folder / "hosts.txt").write_text("h4\nh2\nh1\n")
    examples = REPOSITORY / "experiments" / "examples"
    (folder / "relay.goal").write_bytes((examples / "relay.goal").read_bytes())
    step = [sys.executable, str(examples / "training_step.py")]
    (folder / "step.goal").write_bytes(subprocess.run(step, capture_output=True, check=True).stdout)
    trace = [sys.executable, str(examples / "chakra_trace.py"), str(folder / "trace")]
    subprocess.run(trace, check=True)
    prepared = Shell(folder)
    assert prepared.run("knotless flows torus,4,4 --engine dor --out rules").status == 0
    assert prepared.run("knotless topology my.graphml --out my.json").status == 0
    protected = "knotless flows torus,4,4 --protection fast-failover --out protected"
    assert prepared.run(protected).status == 0
    return prepared


def test_commands_on_pages_run(shell: Shell) -> None:
    def runs(command: str) -> None:
        done = shell.run(command)
        verb = command.split("knotless ")[1].split()[0]
        assert done.status in STATUSES.get(verb, {0}), (EVERY[command].name, done.output[-500:])

    holds_for_every(runs, [command for command in EVERY if not listed(command)])


def test_the_list_names_tests_that_exist_and_commands_on_pages() -> None:
    assert len(EVERY) > 60
    for row in LIST:
        assert (REPOSITORY / row["test"]).is_file(), row
        used = [command for command in EVERY if re.fullmatch(row["commands"], command)]
        assert used, row


def parse(words: list[str]) -> None:
    """Read the arguments and options of a command line, without running it."""
    command: click.Command | None = main
    context = click.Context(main)
    while isinstance(command, click.Group):
        name, words = words[0], words[1:]
        command = command.get_command(context, name)
        assert command is not None, name
        context = click.Context(command, context, name)
    assert command is not None
    command.make_context(context.info_name, words, context.parent)


def test_commands_that_other_tests_run_have_these_options(shell: Shell) -> None:
    """Those tests run such a command; here is seen that every option and value on pages exists."""

    def is_parsed(command: str) -> None:
        line = command.split("knotless ", 1)[1].split(" > ")[0]
        with chdir(shell.folder):
            parse(shlex.split(line))

    holds_for_every(is_parsed, [command for command in EVERY if listed(command)])
    with pytest.raises(click.NoSuchOption):
        parse(["run", "deadlock", "--quik"])
