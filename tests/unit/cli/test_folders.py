"""Folders that commands write and judge: of one plan, whole, or not at all."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from knotless.cli.main import main


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: str) -> Result:
    done = CliRunner(mix_stderr=False).invoke(main, words, prog_name="knotless")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def names(folder: str) -> set[str]:
    return {path.name for path in Path(folder).iterdir()}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("flows", "torus,4,4"), ("flows", "ring,4")),
        (("export", "mesh,3,3", "--to", "l2"), ("export", "ring,4", "--to", "l2")),
        (("export", "mesh,3,3", "--to", "l2"), ("flows", "ring,4")),
        (("flows", "torus,4,4"), ("export", "mesh,2,2", "--to", "l2")),
    ],
)
def test_what_an_earlier_plan_left_is_removed(
    first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    assert call(*second, "--out", "alone").exit_code == 0
    assert call(*first, "--out", "both").exit_code == 0
    Path("both/notes.txt").write_text("of the user")
    assert call(*second, "--out", "both").exit_code == 0
    assert names("both") - {"notes.txt", "README.txt"} == names("alone") - {"README.txt"}
    assert Path("both/notes.txt").read_text() == "of the user"


@pytest.mark.parametrize("command", [("flows",), ("export", "--to", "l2")])
def test_rules_of_switches_that_nobody_knows_are_not_touched(command: tuple[str, ...]) -> None:
    Path("mine").mkdir()
    Path("mine/core7.flows").write_text("priority=1 actions=drop\n")
    done = call(*command, "ring,4", "--out", "mine")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == ("knotless: mine has core7.flows of another fabric: name a new folder\n")
    assert names("mine") == {"core7.flows"}


def test_a_folder_with_rules_of_other_switches_is_not_judged() -> None:
    assert call("flows", "ring,4", "--engine", "updown", "--out", "rules").exit_code == 0
    assert call("check", "rules").exit_code == 0
    for name in ("s5.flows", "s6.flows", "s6.groups", "s7.groups"):
        Path("rules", name).write_text("")
    done = call("check", "rules", "--json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "knotless: rules: s5.flows, s6.flows, s6.groups and 1 more: not rules of a switch in"
        " fabric.json, so nothing is judged; remove them, or write the rules to a new folder\n"
    )


def test_steps_of_an_earlier_change_are_removed() -> None:
    words = ("change", "ring,4", "--from", "dor:2", "--engine", "updown", "--out", "steps")
    assert call(*words).exit_code == 0
    alone = names("steps")
    last = f"steps/{len(alone) - 1}"  # beside the steps there is the certificate
    assert call("flows", "torus,4,4", "--out", last).exit_code == 0
    assert call(*words).exit_code == 0
    assert names("steps") == alone
    assert call("flows", "torus,4,4", "--out", last).exit_code == 0
    Path(last, "notes.txt").write_text("of the user")
    done = call(*words)
    assert done.exit_code == 2
    assert done.stderr == f"knotless: {last} has files of others: name a new folder\n"
