"""``knotless lab-check``: what is still wrong with a student's work on a lab."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from knotless.base.errors import KnotlessError
from knotless.cli.commands._options import json_option, name_option, print_json
from knotless.cli.output import say

LABS = 10

EXAMPLE = """\b
Example: cp -r labs/02-read-a-proof/skeleton my-lab-2
         knotless lab-check 2 --work my-lab-2
"""


@click.command("lab-check", epilog=EXAMPLE)
@click.argument("number", metavar="N", type=click.IntRange(1, LABS))
@click.option("--work", default=".", show_default=True, metavar="DIR", help="The student's folder.")
@name_option
@click.option(
    "--files-only", is_flag=True, help="Judge the files alone, without a fabric (for teachers)."
)
@json_option
def command(number: int, work: str, name: str, files_only: bool, as_json: bool) -> None:
    """Say what is still wrong with the work on lab N, one line each.

    Labs 1, 3, 4 and 6 also look at the running fabric: run this with sudo in a second terminal.
    Labs 5, 7 and 9 run the Python files in DIR.

    The exit status is 0 if all is right, 1 if something is still wrong, 2 if a file cannot be read.
    """
    from knotless.lab_checks.lab import Work, labs

    directory = Path(work)
    if not directory.is_dir():
        raise KnotlessError(f"--work {work}: there is no such folder; copy the skeleton of the lab")
    lab = labs()[number]
    problems = lab.problems(Work(directory, None if files_only else name))
    if as_json:
        print_json({"lab": number, "name": lab.name, "ok": not problems, "problems": problems})
    elif problems:
        say(f"{lab.title}: {len(problems)} still wrong")
        for line in problems:
            say(f"- {line}")
    else:
        say(f"{lab.title}: all right")
    sys.exit(1 if problems else 0)
