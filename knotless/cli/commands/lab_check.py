"""``knotless lab-check``: what is still wrong with a student's work on a lab."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from knotless.base.errors import KnotlessError
from knotless.cli.answer import Answer, Headline, Several, Table, Tone, print_answer
from knotless.cli.numbers import Whole
from knotless.cli.options import json_option, name_option, print_json

if TYPE_CHECKING:
    from knotless.lab_checks.lab import Lab

LABS = 10

EXAMPLE = """\b
Example: cp -r labs/02-read-a-proof/skeleton my-lab-2
         knotless lab-check 2 --work my-lab-2
         knotless lab-check 2 --all class    # a folder in it for each student
"""


@click.command("lab-check", epilog=EXAMPLE)
@click.argument("number", metavar="N", type=Whole(1, LABS))
@click.option("--work", default=".", show_default=True, metavar="DIR", help="The student's folder.")
@click.option(
    "--all",
    "class_folder",
    metavar="FOLDER",
    help="Judge the files of a class: a line for each folder in FOLDER, a column for each task.",
)
@name_option
@click.option(
    "--files-only", is_flag=True, help="Judge the files alone, without a fabric (for teachers)."
)
@json_option
def command(
    number: int, work: str, class_folder: str | None, name: str, files_only: bool, as_json: bool
) -> None:
    """Say what is still wrong with the work on lab N, one line each.

    Labs 1, 3, 4 and 6 also look at the running fabric: run this with sudo in a second terminal.
    Labs 5, 7 and 9 run the Python files in DIR, for 20 s of processor time and in 1 GB at most.

    The exit status is 0 if all is right, 1 if something is still wrong, 2 if a file cannot be read.
    """
    from knotless.lab_checks.judge import judged
    from knotless.lab_checks.lab import Work, labs

    if class_folder is not None:
        sys.exit(_judge_class(labs()[number], class_folder, as_json=as_json))
    directory = Path(work)
    if not directory.is_dir():
        raise KnotlessError(f"--work {work}: there is no such folder; copy the skeleton of the lab")
    lab = labs()[number]
    problems = judged(number, "problems", Work(directory, None if files_only else name))
    if as_json:
        print_json({"lab": number, "name": lab.name, "ok": not problems, "problems": problems})
    elif problems:
        headline = Headline(lab.title, f"{len(problems)} still wrong", tone=Tone.BAD)
        print_answer(Answer(headline, why=[Several(problems, "problems", len(problems))]))
    else:
        print_answer(Answer(Headline(lab.title, "all right")))
    sys.exit(1 if problems else 0)


def _judge_class(lab: Lab, folder: str, *, as_json: bool) -> int:
    """Print a row for each folder of a class; return 0 if all work is right, else 1.

    Work that cannot be read is a row too, since the others do not depend on it.
    """
    if not Path(folder).is_dir():
        raise KnotlessError(f"--all {folder}: there is no such folder; give that of the class")
    directories = sorted(
        path for path in Path(folder).iterdir() if path.is_dir() and path.name[0] != "."
    )
    if not directories:
        raise KnotlessError(f"--all {folder}: has no folders; give one with a folder per student")
    rows: list[dict[str, Any]] = []
    for directory in directories:
        tasks = _tasks(lab, directory)
        problems = [*dict.fromkeys(line for lines in tasks.values() for line in lines)]
        row = {"work": directory.name, "ok": not problems, "tasks": tasks, "problems": problems}
        rows.append(row)
    if as_json:
        print_json({"lab": lab.number, "name": lab.name, "class": rows})
    else:
        _print_class(lab, rows)
    return 0 if all(row["ok"] for row in rows) else 1


def _tasks(lab: Lab, directory: Path) -> dict[str, list[str]]:
    """Return what is still wrong with each task; one line for all of work that ends its process."""
    from knotless.lab_checks.judge import judged
    from knotless.lab_checks.lab import Work

    work = Work(directory)
    try:
        return dict(judged(lab.number, "results", work, quiet=True))
    except KnotlessError as problem:
        return {name: [str(problem)] for name in lab.tasks(work)}


def _print_class(lab: Lab, rows: list[dict[str, Any]]) -> None:
    """Print a line for each student: how much is wrong with each task, and the first of it."""
    right = sum(row["ok"] for row in rows)
    word = f"{right} of {len(rows)} all right"
    tone = Tone.GOOD if right == len(rows) else Tone.OPEN
    cells = []
    for row in rows:
        counts = [f"{len(lines)} wrong" if lines else "right" for lines in row["tasks"].values()]
        cells.append([row["work"], *counts, row["problems"][0] if row["problems"] else ""])
    table = Table("", ["work", *rows[0]["tasks"], "first"], cells)
    headline = Headline(lab.title, word, "(files only)", tone)
    print_answer(Answer(headline, tables=[table]), details=True)
