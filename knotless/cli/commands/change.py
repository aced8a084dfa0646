"""``knotless change``: change the routes of a running fabric in proven steps."""

from __future__ import annotations

from typing import Any

import click

from knotless.base.errors import PlanError
from knotless.cli import complete
from knotless.cli.answer import Hint, print_answer
from knotless.cli.commands._plan_options import PLAN_OPTIONS, changed_plan_options
from knotless.cli.commands._running import (
    RequestOptions,
    change_answer,
    change_options,
    perform,
    proofs_of_steps,
)
from knotless.cli.help import Command
from knotless.cli.options import fabric_of, given_options, print_json
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.verification.changes.planner import between_plans
from knotless.verification.changes.record import described, write_steps

EXAMPLE = """\b
Example: knotless change --engine dl --vcs 2 --dry-run
         knotless change --engine dl --vcs 2 --out steps && knotless check steps/1
         knotless change
         knotless change torus,4,4 --from dor --engine updown --dry-run
         knotless change ring,6 --from dor --engine dl --proofs steps
"""


@click.command("change", cls=Command, epilog=EXAMPLE)
@click.argument("spec", required=False, shell_complete=complete.fabrics)
@changed_plan_options
@click.option(
    "--from",
    "before",
    metavar="ENGINE[:VCS]",
    help="With SPEC: the plan that is installed, such as dor or dl:2; default: auto.",
)
@change_options
def command(
    spec: str | None, options: dict[str, Any], before: str | None, request: RequestOptions
) -> None:
    """Change the plan of a running fabric under traffic, in steps that are proven first.

    Options that are not given are as the fabric was started; without any, the routes return to
    those. Shows the tier, the steps, how many rules change and what was proven. A change that is
    refused changes nothing.

    With SPEC nothing needs to run: the steps from one plan to another are only shown (--dry-run),
    or written (--out, --proofs). Multicast groups are those of the new plan; --from has none.
    """
    if spec is None:
        if before is not None:
            raise PlanError("--from needs a SPEC: a running fabric is changed from what it holds")
        perform("/change", options, request)
        return
    folder = request.folder
    if not request.dry_run and folder is None:
        raise PlanError("with SPEC nothing is changed: add --dry-run, --out DIR or --proofs DIR")
    fabric = fabric_of(spec)
    own = ("engine", "vcs", "root", "select", "multicast")
    common = {key: value for key, value in options.items() if key not in own}
    old = make_plan(fabric, PlanRequest.from_name(before or "auto", **common))
    change = between_plans(old, make_plan(fabric, PlanRequest.from_options(**options)))
    answer = described(change)
    if folder is not None:
        write_steps(change, folder)
    answer |= proofs_of_steps(answer, request)
    if request.as_json:
        print_json(answer)
    else:
        print_answer(change_answer(answer, _hints(spec, request)), details=request.details)


def _hints(spec: str, request: RequestOptions) -> list[Hint]:
    if (folder := request.folder) is not None:
        return [Hint("check the first step", ["knotless", "check", f"{folder}/1"])]
    given = [spec, *given_options("before", *PLAN_OPTIONS)]
    return [Hint("write the rules of each step", ["knotless", "change", *given, "--out", "steps"])]
