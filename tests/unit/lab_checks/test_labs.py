"""The checkers of the labs: each accepts its solution, and says what its skeleton lacks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from knotless.cli.commands.lab_check import LABS
from knotless.cli.main import main
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.forwarding.openflow.directory import dir_files
from knotless.lab_checks.lab import FOLDER, Lab, Work, labs
from knotless.routing.plan import make_plan
from knotless.topologies import load

LACKING = {
    1: ["answers.yaml: cycle: still empty", "answers.yaml: safe_engine: still empty"],
    2: ["rules: missing: make it as the sheet says, or copy the skeleton"],
    3: ["rules: the frames of h3 and h4 to h5 leave s2 on the same port; one pair must pass s1"],
    4: ["answers.yaml: vcs: still empty", "answers.yaml: cycle_under_pause: still empty"],
    5: [
        "answers.yaml: levels: missing are s2, s3, s4, s5, s6",
        "my_updown.py on torus,4,4: it CAN DEADLOCK under PAUSE:"
        " s1:2/0 -> s2:2/0 -> s3:2/0 -> s4:2/0 -> s1:2/0",
        "my_updown.py on mesh,3,3: the path from s4 to s2 goes up after it went down",
    ],
    6: ["answers.yaml: from: still empty"],
    7: [
        "answers.yaml: square: must be three rows of three numbers",
        "schedule.py: phase 0: 3 flows share a link between switches",
    ],
    8: [
        "rounds.yaml: rounds: host 1 can leave before host 3 has arrived",
        "answers.yaml: results: still empty",
    ],
    9: ["my_engine.py, line 16: NotImplementedError: choose a neighbour (on mesh,4,4)"],
    10: [
        "answers.yaml: cycle: still empty",
        "rules: it CAN DEADLOCK under PAUSE:"
        " s3:3/0 -> s5:4/0 -> s8:4/0 -> s7:3/0 -> s6:3/0 -> s3:3/0",
    ],
}
"""Lines that a student reads who has only copied the skeleton."""


def copied(lab: Lab, which: str, to: Path) -> Path:
    """Return a copy of a skeleton, completed by the solution if that is wanted."""
    shutil.copytree(lab.folder / "skeleton", to, dirs_exist_ok=True)
    if which == "solution":
        shutil.copytree(lab.folder / "solution", to, dirs_exist_ok=True)
    return to


def lab_check(*words: object) -> Result:
    return CliRunner().invoke(main, ["lab-check", *map(str, words)])


def problems(number: int, folder: Path) -> list[str]:
    """Return what is wrong, with the names of files as from inside of the folder."""
    return [line.replace(f"{folder}/", "") for line in labs()[number].problems(Work(folder))]


def with_answers(number: int, folder: Path, **changed: object) -> Path:
    """Return a copy of the solution of a lab with other answers."""
    copied(labs()[number], "solution", folder)
    path = folder / "answers.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **changed}))
    return folder


def test_there_are_ten_labs_with_their_folders() -> None:
    assert list(labs()) == list(range(1, LABS + 1)) == sorted(LACKING)
    folders = sorted(path for path in FOLDER.glob("[0-9]*"))
    assert folders == [lab.folder for lab in labs().values()]
    for lab in labs().values():
        assert (lab.folder / "README.md").read_text().startswith(f"# Lab {lab.number}: ")


@pytest.mark.parametrize("number", LACKING)
def test_the_solution_is_accepted(number: int, tmp_path: Path) -> None:
    folder = copied(labs()[number], "solution", tmp_path)
    done = lab_check(number, "--work", folder, "--files-only")
    assert (done.exit_code, done.output) == (0, f"{labs()[number].title}: all right\n")


@pytest.mark.parametrize("number", LACKING)
def test_the_skeleton_is_rejected_with_what_is_missing(number: int, tmp_path: Path) -> None:
    folder = copied(labs()[number], "skeleton", tmp_path)
    done = lab_check(number, "--work", folder, "--files-only")
    assert done.exit_code == 1
    first, *lines = done.output.splitlines()
    assert first == f"{labs()[number].title}: {len(lines)} still wrong"
    assert {f"  {line}" for line in LACKING[number]} <= {
        line.replace(f"{folder}/", "") for line in lines
    }


@pytest.mark.parametrize(
    ("number", "changed", "message"),
    [
        (1, {"cycle": ["s1:2/0", "s2:3/0"]}, "cycle: no packet holds s1:2/0 while it waits for"),
        (1, {"cycle": ["s1:2/0", "s1:2/0"]}, "cycle: names a channel twice"),
        (
            2,
            {"cycle": ["s1:3", "s2:3"]},
            "cycle: s1:3 is no virtual channel: one is written s1:3/0, with priority",
        ),
        (1, {"cycle": "s1:2/0"}, "cycle: must be a list such as [a, b], not 's1:2/0'"),
        (1, {"safe_engine": "minimal"}, "safe_engine: minimal on ring,4 CAN DEADLOCK under PAUSE"),
        (1, {"safe_engine": "updwn"}, "did you mean 'updown'?"),
        (2, {"flow_control_without_deadlock": "switch"}, "CAN DEADLOCK under PAUSE between"),
        (2, {"flow_control_without_deadlock": "some"}, "flow control 'some' is not one of"),
        (2, {"packets": [{"from": "h1", "to": "h5"}] * 5}, "knotless check prints this one itself"),
        (2, {"packets": [{"from": "h1", "to": "h3"}] * 5}, "h1 to h3 takes s1:3/0, so it does not"),
        (2, {"packets": [{"from": "h1", "to": "h99"}] * 5}, "must be two hosts"),
        (2, {"packets": [{"from:h1": None, "to: h3": None}] * 5}, "with ': ' behind both words"),
        (2, {"packets": [7] * 5}, "must be two hosts"),
        (2, {"packets": [{"from": "h1", "to": "h5"}]}, "1 packet for 5 channels"),
        (4, {"vcs": 3}, "vcs: the plan does not use 3"),
        (4, {"vcs": "two"}, "vcs: must be a whole number, not 'two'"),
        (4, {"change_of_virtual_channel": ["s1:2/0", "s2:2/0"]}, "no packet moves from s1:2/0"),
        (5, {"levels": {"s1": 1}}, "levels: s1 is not on level 1"),
        (5, {"upper_end": {"s1-s2": "s2"}}, "upper_end: s1-s2: the upper end is not s2"),
        (5, {"upper_end": []}, "upper_end: must be a mapping such as {s1-s2: s1}"),
        (6, {"after": ["s1", "s2"]}, "after: frames from h1 to h2 do not pass s1, s2"),
        (6, {"link": "s5-s6"}, "link: frames from h1 to h2 do not use this link"),
        (6, {"link": "s1-s6"}, "answers.yaml: "),
        (7, {"square": [[0, 0, 0]] * 3}, "each row and each column must contain 0, 1 and 2 once"),
        (7, {"square": [[0, 1, 2], [1, 2, 0], [2, 0, 1]]}, "must be on one line: slope 1"),
        (8, {"rounds_for_9_hosts": 3}, "after 3 rounds a host has heard of at most 8 hosts"),
        (8, {"rounds_for_32_hosts": 6}, "rounds_for_32_hosts: fewer are enough"),
        (8, {"faster_on_a_hub": "shuffle"}, "not shuffle: your run measured shuffle 1750.9 us"),
        (10, {"switch": "s3"}, "switch: you changed rules of s5"),
    ],
)
def test_a_wrong_answer_is_explained(
    number: int, changed: dict[str, object], message: str, tmp_path: Path
) -> None:
    lines = problems(number, with_answers(number, tmp_path, **changed))
    assert [line for line in lines if message in line], lines


@pytest.mark.parametrize(
    ("number", "changed"),
    [
        (4, {"vcs": "two", "change_of_virtual_channel": 1}),
        (5, {"levels": 1, "upper_end": 1}),
        (6, {"before": 1, "after": {"a": 1}}),
        (6, {"from": None, "to": None, "link": None, "before": []}),
        (8, {"rounds_for_9_hosts": "x", "rounds_for_32_hosts": -1, "faster_on_a_hub": [1]}),
        (10, {"cycle": 7, "switch": None}),
    ],
)
def test_all_wrong_answers_are_named_at_once(
    number: int, changed: dict[str, object], tmp_path: Path
) -> None:
    lines = problems(number, with_answers(number, tmp_path, **changed))
    named = {line.split(": ")[1] for line in lines}
    assert {*changed} <= named, lines


def test_files_are_named_as_the_folder_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(labs()[1], "skeleton", tmp_path / "my-lab")
    monkeypatch.chdir(tmp_path)
    done = lab_check(1, "--work", "my-lab", "--files-only")
    assert "  my-lab/answers.yaml: cycle: still empty\n" in done.output
    monkeypatch.chdir(tmp_path / "my-lab")
    assert "  answers.yaml: cycle: still empty\n" in lab_check(1, "--files-only").output


@pytest.mark.parametrize("value", [7, "", "x", [[]], [{"a": []}], {"a": [1]}, [None]])
def test_answers_of_any_form_give_lines(value: object, tmp_path: Path) -> None:
    for number in (1, 2, 4, 6, 7, 8, 10):
        folder = copied(labs()[number], "solution", tmp_path / str(number))
        keys = yaml.safe_load((folder / "answers.yaml").read_text())
        for key in keys:
            lines = problems(number, with_answers(number, folder, **{key: value}))
            assert lines, (number, key)


def test_other_right_answers_are_accepted(tmp_path: Path) -> None:
    turned = ["s3:2/0", "s4:2/0", "s1:2/0", "s2:2/0"]
    assert problems(1, with_answers(1, tmp_path / "1", cycle=turned, safe_engine="lash")) == []
    other = {"link": "s5-s6", "from": "h6", "to": "h5"}
    paths = {"before": ["s6", "s5"], "after": ["s6", "s3", "s2", "s5"]}
    assert problems(6, with_answers(6, tmp_path / "6", **other, **paths)) == []


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        ([[[1, 2], [1, 3]]], "round 1: host 1 sends twice"),
        ([[[2, 1], [3, 1]]], "round 1: host 1 receives twice"),
        ([[[1, 9]]], "must contain messages such as [1, 2] between hosts 1 to 8"),
        ([3], "round 1: must be a list"),
    ],
)
def test_a_wrong_barrier_is_explained(rounds: object, message: str, tmp_path: Path) -> None:
    copied(labs()[8], "solution", tmp_path)
    (tmp_path / "rounds.yaml").write_text(yaml.safe_dump({"rounds": rounds}))
    assert any(message in line for line in problems(8, tmp_path))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return column, row, 0", "phase 0: two hosts send to the same host"),
        ("return column, row, place", "are served in no phase, and others twice"),
        ("return 9, 9, 9", "gives (9, 9, 9), which is no (column, row, place)"),
        ("return None", "raises TypeError"),
    ],
)
def test_a_wrong_schedule_is_explained(body: str, message: str, tmp_path: Path) -> None:
    copied(labs()[7], "solution", tmp_path)
    text = f"def destination(phase, column, row, place):\n    {body}\n"
    (tmp_path / "schedule.py").write_text(text)
    assert any(message in line for line in problems(7, tmp_path))


def test_the_fault_of_lab_10_is_one_number_in_a_plan_of_ours() -> None:
    plan = make_plan(load("random,8,degree=3,hosts=1"), "updown")
    right = dir_files(plan.fabric, compile_rules(plan))
    rules = labs()[10].folder / "skeleton" / "rules"
    given = {path.name: path.read_text() for path in rules.iterdir()}
    assert set(given) == set(right)
    assert [name for name in right if right[name] != given[name]] == ["s5.flows"]
    pairs = zip(right["s5.flows"].splitlines(), given["s5.flows"].splitlines(), strict=True)
    assert sum(a != b for a, b in pairs) == 1


def test_a_second_changed_switch_is_refused(tmp_path: Path) -> None:
    copied(labs()[10], "solution", tmp_path)
    path = tmp_path / "rules" / "s6.flows"
    path.write_text(path.read_text().replace("priority=103", "priority=104"))
    assert any("but you changed s5, s6" in line for line in problems(10, tmp_path))


def test_unreadable_work_is_one_line_with_status_2(tmp_path: Path) -> None:
    (tmp_path / "answers.yaml").write_text("cycle: [")
    for words, message in (
        (("1", "--work", tmp_path), "answers.yaml: line 1: not YAML"),
        (("1", "--work", tmp_path / "none"), "there is no such folder"),
        (("11",), "11 is not at most 10"),
    ):
        done = lab_check(*words, *["--files-only"] * (words != ("11",)))
        assert done.exit_code == 2
        assert message in done.output
        assert done.output.count("\n") == 1


@pytest.mark.parametrize("number", [number for number in LACKING if number not in (3, 9)])
def test_keys_that_no_question_has_are_named(number: int, tmp_path: Path) -> None:
    copied(labs()[number], "solution", tmp_path)
    path = tmp_path / "answers.yaml"
    keys = list(yaml.safe_load(path.read_text()))
    path.write_text(f"{path.read_text()}\n{keys[0]}x: 7\n")
    message = f"answers.yaml: {keys[0]}x: there is no such key; did you mean {keys[0]}?"
    assert problems(number, tmp_path) == [message]


@pytest.mark.parametrize("other", ["Answers.yaml", "answers.yml", "ANSWERS.YAML"])
def test_a_file_with_another_spelling_is_named(other: str, tmp_path: Path) -> None:
    copied(labs()[1], "solution", tmp_path)
    (tmp_path / "answers.yaml").rename(tmp_path / other)
    assert f"{other}: must be called answers.yaml: rename it" in problems(1, tmp_path)


def test_a_class_is_a_table(tmp_path: Path) -> None:
    for name, which in (("ada", "solution"), ("bob", "skeleton"), ("eve", "skeleton")):
        copied(labs()[1], which, tmp_path / name)
    (tmp_path / "eve" / "answers.yaml").write_text("cycle: [")
    (tmp_path / "notes.txt").touch()
    done = lab_check(1, "--all", tmp_path)
    lines = done.output.splitlines()
    assert done.exit_code == 1
    assert lines[0] == "lab 1, freeze a ring: 1 of 3 all right (files only)"
    assert lines[1].split() == ["work", "answers", "predicted", "cure", "first"]
    assert [" ".join(line.split()[:7]) for line in lines[2:]] == [
        "ada right right right",
        "bob 2 wrong 1 wrong 1 wrong",
        "eve 1 wrong 1 wrong 1 wrong",
    ]
    assert lines[3].endswith(f"{tmp_path}/bob/answers.yaml: cycle: still empty")
    assert "answers.yaml: line 1: not YAML" in lines[4]
    rows = json.loads(lab_check(1, "--all", tmp_path, "--json").output)["class"]
    assert [(row["work"], row["ok"]) for row in rows] == [
        ("ada", True),
        ("bob", False),
        ("eve", False),
    ]
    assert rows[1]["problems"] == [f"{tmp_path}/bob/{line}" for line in LACKING[1]]
    assert rows[1]["tasks"]["cure"] == [f"{tmp_path}/bob/{LACKING[1][1]}"]
    for wrong in (tmp_path / "none", tmp_path / "ada"):
        done = lab_check(1, "--all", wrong)
        assert (done.exit_code, done.output.count("\n")) == (2, 1)


def test_json_lists_what_is_wrong(tmp_path: Path) -> None:
    copied(labs()[1], "skeleton", tmp_path)
    done = lab_check(1, "--work", tmp_path, "--files-only", "--json")
    assert done.exit_code == 1
    output = json.loads(done.output)
    assert (output["lab"], output["ok"], output["problems"]) == (
        1,
        False,
        [f"{tmp_path}/{line}" for line in LACKING[1]],
    )
