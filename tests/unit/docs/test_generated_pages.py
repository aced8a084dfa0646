"""Generated pages of the documentation cover everything that the program has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.generator import commands, families, replays, rust, shell
from docs.generator.outputs import COMMANDS
from knotless.cli.main import main
from knotless.results import recording
from knotless.topologies.registry import families as known_families
from tests.support import REPOSITORY


def test_every_family_is_drawn() -> None:
    page = families.page()
    for name, family in known_families().items():
        assert f"### {name}\n" in page
        assert f"`{family.usage}`" in page
        assert f"images/{name}.svg" in page


def test_what_is_drawn_of_a_new_family_is_small_but_not_too_small() -> None:
    by_name = known_families()
    assert [families.smallest(by_name[name]) for name in ("ring", "flat", "irregular-a")] == [
        *("ring,4", "flat,6", "irregular-a")
    ]
    assert set(families.CHOSEN) <= set(by_name)


def test_every_command_and_option_is_listed() -> None:
    page = commands.page()
    listed = dict(commands.all_commands())
    assert {name.split()[1] for name in listed} == set(main.commands or main.list_commands(None))  # type: ignore[arg-type]
    for name, command in listed.items():
        assert f"# {name}\n" in page
        for option in command.params:
            if option.param_type_name == "option":
                assert option.opts[0] in page


def test_every_crate_with_a_library_is_listed() -> None:
    page = rust.page()
    assert len(rust.crates()) > 5
    assert all(f"## {crate.name}\n" in page for crate in rust.crates())
    assert "plan" in COMMANDS


def test_blocks_are_run_and_their_output_added(tmp_path: Path) -> None:
    text = "```csv file=a/b.csv\n1,2\n```\n\n```sh run\ncat a/b.csv\n```\n\n```sh\nfalse\n```\n"
    shown = shell.executed(text, tmp_path, "page")
    assert '```csv title="a/b.csv"\n1,2\n```' in shown
    assert "```sh\ncat a/b.csv\n```\n\n```{.text .output}\n1,2\n```" in shown
    assert shown.endswith("```sh\nfalse\n```\n")


def test_a_command_with_another_exit_status_is_refused(tmp_path: Path) -> None:
    with pytest.raises(shell.PageError, match="page: 'false' has exit status 1, not 0"):
        shell.executed("```sh run\nfalse\n```\n", tmp_path, "page")
    assert "{.text" not in shell.executed("```sh run exit=1\nfalse\n```\n", tmp_path, "page")


def test_long_lines_break_and_long_outputs_end() -> None:
    assert shell.shortened("word " * 30).count("\n") == 1
    assert shell.shortened("x\n" * 100).endswith("and 40 more lines")


def test_the_landing_page_plays_a_recording_that_freezes() -> None:
    shown = re.findall(r'src="(replays/[\w-]+)\.html"', (REPOSITORY / "docs/index.md").read_text())
    assert [f"{name}.html" for name in shown] == list(replays.WRITERS)
    for name in shown:
        recorded = recording.read(REPOSITORY / "docs" / f"{name}{recording.SUFFIX}")
        assert recorded.title.startswith("emulation of ring,4")
        frozen = [frame["knot"] is not None for frame in recorded.frames]
        assert frozen[-1]
        assert frozen.count(False) > 20  # traffic is seen before
        for frame in recorded.frames:
            flows = [
                of for held in (frame["knot"] or {"waiting": {}})["waiting"].values() for of in held
            ]
            assert all(of["from"].startswith("h") for of in flows)


def test_the_search_needs_no_other_host() -> None:
    settings = (REPOSITORY / "mkdocs.yml").read_text()
    assert "  - offline" in settings
    scripts = re.findall(r"polyfills: \[(\S+)\]", settings)
    assert scripts
    for script in scripts:
        assert "iframe-worker" in script  # or the plugin asks unpkg.com
        assert (REPOSITORY / "docs" / script).exists()
