"""``knotless run``: run an experiment and write its results."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from knotless.base.counting import counted
from knotless.base.errors import KnotlessError
from knotless.base.quantities import MBPS, SECONDS
from knotless.cli.answer import Answer, Headline, Hint, Several, Table, Tone, print_answer
from knotless.cli.groups import SuggestingGroup
from knotless.cli.numbers import Number, Whole
from knotless.cli.options import MAX_SLOW_DOWN, lower_case
from knotless.cli.output import say, say_json
from knotless.cli.priority import PRIORITY
from knotless.cli.progress import Bar, terminated_as_interrupted
from knotless_experiments.framework import experiment as catalogue
from knotless_experiments.framework import recorded
from knotless_experiments.framework.campaign import Campaign as OnFabrics
from knotless_experiments.framework.experiment import (
    ANALYSIS,
    EMULATION,
    Campaign,
    Common,
    Experiment,
    ExperimentError,
    Presentation,
)
from knotless_experiments.framework.routed import slow_down

MAX_REPEATS = 1000
EVERY = "all"
"""The name with which ``run`` runs every experiment."""


class StepBar(Bar):
    """Shows the steps of a campaign."""

    def begin(self, what: str) -> None:
        """Show the current step."""
        self.update(description=what)

    def advance(self) -> None:
        """Count a finished step."""
        self.update(advance=1)


def execute(
    chosen: Experiment, campaign: Campaign, values: Mapping[str, Any]
) -> tuple[dict[str, Any], Path, Presentation]:
    """Run a campaign into a new folder under ``out``; write a report however it ends."""
    from knotless.results.results import Results
    from knotless_experiments.framework import report

    out = Path(values["out"])
    types = chosen.columns.sample_types
    results = Results(chosen.name, campaign.parameters, values["seed"], types, out)
    recorded.folder.set(results.directory if values["record"] else None)
    with terminated_as_interrupted():
        try:
            with results, StepBar(total=campaign.steps) as progress:
                campaign.run(results.add, progress)
        except BaseException:
            if results.rows:
                path, _ = report.make(results.directory, chosen)
                say(f"knotless: incomplete; what was measured is in {path}", err=True)
            raise
    path, shown = report.make(results.directory, chosen)
    return results.run, path, shown


def run_answer(shown: Presentation, path: Path, *, recorded: bool) -> Answer:
    """Return what to say about a run whose report is at ``path``.

    ``recorded`` is whether what all channels did lies beside it.
    """
    replay = Hint("watch it", ["knotless", "replay", str(path.parent)])
    rows, brief = shown.rows, shown.columns.brief
    invalid = sum(not row["valid"] for row in rows)
    valid = f"{len(rows) - invalid} of {counted(len(rows), 'runs')} valid"
    word, rest = shown.answer or (valid, "")
    if shown.answer and invalid:
        rest += f", {valid}"
    return Answer(
        Headline(shown.title, word, rest, Tone.OPEN if invalid else Tone.GOOD),
        why=[Several(shown.sentences, "findings", len(shown.sentences))],
        tables=[Table("", brief.headings, brief.table(rows))],
        remarks=[f"report with plots: {path}"],
        hints=[replay] if recorded else [],
    )


def _prepared(chosen: Experiment, values: Mapping[str, Any]) -> Campaign:
    """Check the settings of an experiment; raises KnotlessError before anything is started."""
    on = chosen.places[0] if values["on"] is None else values["on"]
    if on not in chosen.places:
        raise ExperimentError(f"--on: {chosen.name} runs on {', '.join(chosen.places)}, not {on!r}")
    own = {option.name: values[option.name] for option in chosen.options if option.name}
    common = Common(
        on=on,
        quick=values["quick"],
        repeats=values["repeats"],
        seed=values["seed"],
        duration_s=values["duration"],
        rate_mbps=values["rate"],
    )
    campaign = chosen.prepare(common, own)
    if values["record"] and not (isinstance(campaign, OnFabrics) and on != ANALYSIS):
        raise ExperimentError(f"--record: {chosen.name} on {on} has no channels over time")
    if on != EMULATION and values["slow_down"] != 1:
        raise ExperimentError(f"--slow-down: {on} has no real time to be slower than")
    if on == EMULATION:
        slow_down.set(values["slow_down"])
        from knotless.emulation.priority import Priority, default_priority
        from knotless.emulation.requirements import require_fabrics

        default_priority.set(Priority(values["priority"]))
        require_fabrics()
    return campaign


def _run(name: str, values: Mapping[str, Any]) -> None:
    chosen = catalogue.load(name)
    campaign = _prepared(chosen, values)
    run, path, shown = execute(chosen, campaign, values)
    if values["as_json"]:
        head = {"experiment": name, "status": run["status"], "report": str(path)}
        say_json({**head, "rows": run["rows"]}, allow_nan=False)
    else:
        print_answer(run_answer(shown, path, recorded=values["record"]))


def _run_every(values: Mapping[str, Any]) -> int:
    """Run every experiment that supports the place, one after the other.

    All settings are checked before the first one starts. An experiment that fails is reported in
    its line, and the next one runs.
    """
    prepared: list[tuple[Experiment, Campaign]] = []
    for name in catalogue.names():
        chosen = catalogue.load(name)
        if values["on"] in (None, *chosen.places):
            defaults = _command_of(name).make_context(name, []).params
            prepared.append((chosen, _prepared(chosen, {**defaults, **values})))
    if not prepared:
        raise ExperimentError(f"--on: no experiment runs on {values['on']!r}")
    rows = [_judged(*each, values) for each in prepared]
    if values["as_json"]:
        say_json({"rows": rows}, allow_nan=False)
    else:
        print_answer(_answer_of_every(rows), details=True)
    return 0 if all(row["ok"] for row in rows) else 1


def _answer_of_every(rows: Sequence[Mapping[str, Any]]) -> Answer:
    complete = sum(row["ok"] for row in rows)
    cells = [
        [
            row["experiment"],
            *("yes" if row[key] else "NO" for key in ("ok", "valid")),
            f"{row['seconds']:.1f}",
            row["report"] or row["reason"],
        ]
        for row in rows
    ]
    tone = Tone.GOOD if complete == len(rows) else Tone.BAD
    return Answer(
        Headline("all experiments", f"{complete} of {len(rows)} complete", tone=tone),
        tables=[Table("", ["experiment", "ok", "valid", "seconds", "report"], cells)],
    )


def _judged(chosen: Experiment, campaign: Campaign, values: Mapping[str, Any]) -> dict[str, Any]:
    """Run a campaign; ``ok``: it was completed; ``valid``: all its measurements are valid."""
    began = time.monotonic()
    outcome: dict[str, Any] = {"ok": False, "valid": False, "report": None, "reason": None}
    try:
        run, path, _ = execute(chosen, campaign, values)
        valid = bool(run["rows"]) and all(row["valid"] for row in run["rows"])
        outcome |= {"ok": True, "valid": valid, "report": str(path)}
    except KnotlessError as error:
        outcome["reason"] = str(error)
    seconds = round(time.monotonic() - began, 1)
    return {"experiment": chosen.name, **outcome, "seconds": seconds}


def _shared(places: Sequence[str]) -> list[click.Parameter]:
    """Return the options that all experiments share."""
    return [
        click.Option(
            ["--on"],
            callback=lower_case,
            metavar="|".join(places),
            help=f"Where it runs (default: {places[0]}).",
        ),
        click.Option(["--quick"], is_flag=True, help="A small set that shows the main result."),
        click.Option(
            ["--repeats"],
            type=Whole(1, MAX_REPEATS),
            default=1,
            show_default=True,
            help="Runs of each case.",
        ),
        click.Option(["--seed"], type=Whole(0, 2**32 - 1), default=1, show_default=True),
        click.Option(["--duration"], type=Number(unit=SECONDS), help="Measured time per run, s."),
        click.Option(["--rate"], type=Number(unit=MBPS), help="Rate of every link, Mbit/s."),
        click.Option(
            ["--slow-down"],
            type=Number(min=1, max=MAX_SLOW_DOWN),
            default=1.0,
            show_default=True,
            metavar="K",
            help="Emulation: virtual time passes at most 1/K times as fast as real time.",
        ),
        PRIORITY,
        click.Option(
            ["--out"],
            default="results",
            show_default=True,
            metavar="DIR",
            help="Folder in which the run's own folder is created.",
        ),
        click.Option(
            ["--record"],
            is_flag=True,
            help="Store what all channels do, for knotless replay --row N.",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Print the rows as JSON."),
    ]


def _command_of(name: str) -> click.Command:
    """Return the command of one experiment: shared options, and its own."""
    chosen = catalogue.load(name)

    def callback(**values: Any) -> None:
        _run(name, values)

    return click.Command(
        name,
        params=[*chosen.options, *_shared(chosen.places)],
        callback=callback,
        help=chosen.summary,
        epilog=f"Example: {chosen.example}",
    )


def _command_of_every() -> click.Command:
    """Return the command that runs every experiment."""

    def callback(**values: Any) -> int:
        return _run_every(values)

    places = dict.fromkeys(place for n in catalogue.names() for place in catalogue.load(n).places)
    return click.Command(
        EVERY,
        params=_shared(tuple(places)),
        callback=callback,
        help="Every experiment, one after the other, by default each on its usual place.",
        epilog="Example: sudo knotless run all --quick --json",
    )


class Experiments(SuggestingGroup):
    """Every experiment as a command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the experiments' names, and the name for all of them."""
        del ctx
        return [EVERY, *catalogue.names()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return an experiment's command, or None if there is none with that name."""
        del ctx
        if cmd_name == EVERY:
            return _command_of_every()
        return _command_of(cmd_name) if cmd_name in catalogue.names() else None


command = Experiments(
    "run",
    help="Run an experiment; its results go to results/EXPERIMENT-TIME-ID/.",
    epilog="Example: sudo knotless run deadlock --quick --json",
)
