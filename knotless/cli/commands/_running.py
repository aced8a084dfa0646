"""Changes of the routes of a running fabric, as several commands request and await them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from knotless.base.counting import counted
from knotless.base.errors import EmulationError, KnotlessError
from knotless.base.files import folder_for_files
from knotless.base.flow_control import FlowControl
from knotless.base.printable import listed
from knotless.base.quantities import SECONDS
from knotless.cli.answer import (
    Answer,
    Figure,
    Group,
    Headline,
    Hint,
    Several,
    Tone,
    print_answer,
)
from knotless.cli.commands._step_proofs import write_step_proofs
from knotless.cli.numbers import Number
from knotless.cli.options import details_option, grouped, json_option, name_option, print_json
from knotless.cli.progress import spinner
from knotless.emulation.names import names_of
from knotless.emulation.requirements import require_fabrics
from knotless.emulation.rest import BusyError, Controller
from knotless.emulation.summary import CHANGE_TEXTS
from knotless.verification.changes.record import write_step_files

_POLL_S = 0.1
_SHOWN_PAIRS = 8
_SHOWN_STEPS = 6
_WORDS = {
    (True, False): "proven",
    (True, True): "changed, proven",
    (False, False): "NOT PROVEN",
    (False, True): "changed, NOT PROVEN",
}
"""The answer, by whether the change is proven and whether it is done."""


@dataclass(frozen=True)
class RequestOptions:
    """Options of a request for a change, and of its output, which these commands share."""

    dry_run: bool
    out: str | None
    proofs: str | None
    timeout_s: float
    name: str
    details: bool
    as_json: bool

    @property
    def folder(self) -> str | None:
        """The folder for the rules of the steps; None: they are not written.

        Raises KnotlessError if two folders are named.
        """
        if self.out is not None and self.proofs is not None:
            raise KnotlessError("--proofs writes what --out does: give one of them")
        return self.out if self.proofs is None else self.proofs


change_options = grouped(
    "request",
    RequestOptions,
    click.option("--dry-run", is_flag=True, help="Show the steps only."),
    click.option(
        "--out",
        metavar="DIR",
        help="Write all rules before the change to DIR/0, those after step k to DIR/k.",
    ),
    click.option(
        "--proofs",
        metavar="DIR",
        help="As --out, and for each step k DIR/k.proof, which knotless verify checks.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=Number(min=0.1, max=86400, unit=SECONDS),
        default=120.0,
        show_default=True,
        help="Time to wait for an earlier change, and until all frames follow the new routes.",
    ),
    name_option,
    details_option,
    json_option,
)


def perform(path: str, body: Mapping[str, object], request: RequestOptions) -> None:
    """Request a change of a running fabric, wait until it is done, and show its steps.

    A change that goes on already is waited for. Raises :class:`EmulationError` if it is refused, or
    is not done in time.
    """
    require_fabrics()
    controller = Controller(names_of(request.name))
    folder = request.folder
    settings = {"dry_run": request.dry_run, "rules": folder is not None}
    with nullcontext() if folder is None else folder_for_files(Path(folder)):
        # A change whose steps cannot be written is not made.
        answer = _request(controller, path, {**body, **settings}, request)
    save(answer.pop("files", None), answer, folder)
    answer |= proofs_of_steps(answer, request)
    if answer["performed"]:
        seconds = _await_routes(controller, request.timeout_s, quiet=request.as_json)
        answer["seconds"] = round(seconds, 3)
    if request.as_json:
        print_json(answer)
    else:
        print_answer(change_answer(answer), details=request.details)


def _request(
    controller: Controller, path: str, body: Mapping[str, object], request: RequestOptions
) -> dict[str, Any]:
    """Request a change as soon as no other goes on; return the answer."""
    until_s = time.monotonic() + request.timeout_s
    with spinner("planning the change", quiet=request.as_json) as show:
        while True:
            try:
                return controller.post(path, body)
            except BusyError:
                if time.monotonic() >= until_s:
                    raise
            show("waiting until an earlier change is complete")
            time.sleep(_POLL_S)


def save(files: Any, answer: Mapping[str, Any], out: str | None) -> None:
    """Write the rules of all steps to a folder, if one is named."""
    if out is None:
        return
    for name in {name for of_step in files for name in of_step}:
        if "/" in name or name.startswith("."):
            raise KnotlessError(f"the controller sent a file {name[:60]!r}, which is not written")
    write_step_files(files, answer["certificate"], out)


def proofs_of_steps(answer: Mapping[str, Any], request: RequestOptions) -> dict[str, list[str]]:
    """Write the proofs of the steps, if they are asked for; returns a line on each step."""
    if request.proofs is None:
        return {}
    with spinner("proving the steps", quiet=request.as_json):
        return {"proofs": write_step_proofs(request.proofs, answer["certificate"])}


def change_answer(answer: Mapping[str, Any], hints: Sequence[Hint] = ()) -> Answer:
    """Return what to say about a change: whether it is proven, its steps, and what it drops."""
    proof, tier = answer["certificate"], answer["tier"]
    took_us = 1e6 * answer["seconds"] if "seconds" in answer else None
    count = len(proof["steps"])
    if count:
        under = FlowControl(proof["flow_control"]).condition
        steps = "one step" if count == 1 else f"{count} steps"
        headline = Headline(
            proof["fabric"],
            _WORDS[proof["proven"], took_us is not None],
            f"{under}, in {steps}: {CHANGE_TEXTS[tier]}",
            Tone.BAD if not proof["proven"] else Tone.OPEN if proof["dropped_pairs"] else Tone.GOOD,
        )
    else:
        headline = Headline(proof["fabric"], CHANGE_TEXTS[tier])
    lines = [
        _step(step, of_step) for step, of_step in zip(answer["steps"], proof["steps"], strict=True)
    ]
    return Answer(
        headline,
        why=[
            Several(lines, "steps", _SHOWN_STEPS),
            *answer.get("proofs", ()),
            *([_drops(proof)] if proof["dropped_pairs"] else []),
            *([f"drained: {listed(answer['drained'])}"] if answer.get("drained") else []),
        ],
        figures=[
            Figure("rules", answer["rules_changed"], "change"),
            Figure("dropped", proof["dropped_pairs"], "pairs of hosts"),
            Figure("done", took_us, "us", where="after the request: frames follow the new routes"),
        ],
        hints=hints,
        details=[
            Group(
                "change record",
                {
                    "tier": tier,
                    "rules_before": proof["before"],
                    **{f"after_step_{step['step']}": step["sha256"] for step in proof["steps"]},
                },
            )
        ],
    )


def _step(step: Mapping[str, Any], proof: Mapping[str, Any]) -> str:
    pairs = step["dropped_pairs"]
    dropped = f", frames of {counted(pairs, 'pairs')} DROPPED" if pairs else ""
    drain = ", then wait until older frames have left" if step["drain"] else ""
    safe = "no cycle" if proof["acyclic"] else f"CYCLE {' '.join(proof['cycle'])}"
    nothing = "nothing else lost" if pairs else "nothing lost"
    lost = f"{proof['lost']} lost" if proof["lost"] else nothing
    rules = counted(step["rules_changed"], "rules")
    return (
        f"{step['step']}. {step['action']}: {rules}{dropped}{drain};"
        f" {safe} in {counted(proof['dependencies'], 'dependencies')}, {lost}"
    )


def _drops(proof: Mapping[str, Any]) -> str:
    """Return which frames a change drops, and for about how long, in one line."""
    shown = [f"{source}->{destination}" for source, destination in proof["dropped"][:_SHOWN_PAIRS]]
    more = " .." if len(proof["dropped"]) > _SHOWN_PAIRS else ""
    return (
        f"DROPPED at their first switch, for about {proof['estimated_drop_s']:.1f} s: frames of"
        f" {counted(proof['dropped_pairs'], 'pairs')}, {' '.join(shown)}{more}"
    )


def _await_routes(controller: Controller, timeout_s: float, *, quiet: bool) -> float:
    """Wait until frames follow the new routes only; return the seconds that it took."""
    began = time.monotonic()
    with spinner("changing the routes", quiet=quiet) as show:
        while True:
            status = controller.status()
            routes = status["routes"]
            refused = [text for text in status["problems"] if text.startswith("the routes stay")]
            if refused:
                raise EmulationError(refused[0])
            if not routes["changing"] and not routes["older_rules"]:
                return time.monotonic() - began
            waiting = routes["waiting_for"]
            what = (
                f"waiting for {counted(len(waiting), 'switches')}: {' '.join(waiting[:4])}"
                if waiting
                else "waiting until frames of older rules have left"
            )
            show(what)
            if time.monotonic() - began > timeout_s:
                raise EmulationError(
                    f"not done after {timeout_s:g} s: {what}; the change goes on, see 'knotless"
                    " status'"
                )
            time.sleep(_POLL_S)
