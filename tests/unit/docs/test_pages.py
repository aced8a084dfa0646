"""The pages of the documentation: their links are valid, and the commands in them exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from docs.generator.pages import DRAWINGS as DRAWN
from docs.generator.pages import WRITERS
from knotless.cli.main import main
from tests.support import REPOSITORY
from tests.support.every import holds_for_every

FOLDERS = ("labs", "controller", "topologies", "experiments", "tools", "tests")
PAGES = sorted(
    [REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    + list((REPOSITORY / "docs").rglob("*.md"))
    + [path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.md")]
)
GENERATED = {REPOSITORY / "docs" / path for path in (*WRITERS, *DRAWN)}
"""Files that exist on the site alone, whose build checks the links to them."""
GENERATED |= {REPOSITORY / "docs" / name for name in ("changelog.md", "contributing.md")}
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))


def code_of(page: Path) -> Iterator[str]:
    """Yield the code on a page: fenced and indented lines, and words between backticks."""
    fenced, joined = False, ""
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            joined += line.split(" # ")[0].strip().removesuffix("\\")
            if not line.endswith("\\"):
                yield joined
                joined = ""
        else:
            yield from re.findall(r"`([^`]+)`", line)


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if target.resolve() in GENERATED:
                continue
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_links_lead_somewhere() -> None:
    holds_for_every(links_lead_somewhere, PAGES, name_of)


def commands_exist(page: Path) -> None:
    for code in code_of(page):
        command = re.match(r"(?:sudo )?(?:\S*/)?knotless ([a-z].*)", code)
        if command:
            check(shlex.split(command[1]), code)
        for target in re.findall(r"^(?:tools/)?make ([a-z][a-z-]*)", code):
            assert target in TARGETS, code


def test_commands_exist_with_their_options() -> None:
    holds_for_every(commands_exist, PAGES, name_of)


def check(words: list[str], code: str) -> None:
    """Follow the words from group to command; every word like an option must be one."""
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        subcommand = command.get_command(context, words.pop(0))
        assert subcommand is not None, code
        command = subcommand
    options = {
        name for each in command.get_params(context) for name in (*each.opts, *each.secondary_opts)
    }
    for word in words:
        if word.startswith("--"):
            assert word.split("=")[0] in options | {"--help"}, code


def test_files_that_contributing_names_exist() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:knotless|core|docs|tests|bench|labs)/[\w/.-]+)`", text)
    assert len(named) > 40
    for name in named:
        if "NN" not in name:
            assert (REPOSITORY / name).exists(), name


def named_tests_exist(page: Path) -> None:
    for file, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page.read_text()):
        assert (REPOSITORY / file).exists(), file
        assert not name or f"def {name}(" in (REPOSITORY / file).read_text(), name


def test_tests_that_pages_name_exist() -> None:
    holds_for_every(named_tests_exist, PAGES, name_of)


def test_the_pages_are_found() -> None:
    assert len(PAGES) > 20
    assert {"demo", "test", "bench"} <= TARGETS
    commands = [code for page in PAGES for code in code_of(page) if "knotless run" in code]
    assert len(commands) > 10
