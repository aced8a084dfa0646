"""Lab 10: one wrong rule in a given fabric, found by its proof and corrected."""

from __future__ import annotations

from collections.abc import Iterator

from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.directory import read_dir
from knotless.lab_checks.lab import Lab, Work
from knotless.lab_checks.proofs import state_of_folder, wrong_cycle, wrong_verdict
from knotless.verification.check import verdict_of

RULES = "rules"


def cycle(work: Work) -> Iterator[str]:
    """The cycle in the answer exists in the rules as they were given."""
    given = state_of_folder(LAB.folder / "skeleton" / RULES)
    yield from wrong_cycle(work.answers, "cycle", given, FlowControl.PAUSE)


def corrected(work: Work) -> Iterator[str]:
    """The rules are correct, and differ from those given on the switch of the answer only."""
    fabric, before = read_dir(LAB.folder / "skeleton" / RULES)
    own, after = read_dir(work.path(RULES))
    shown = work.shown(RULES)
    if own != fabric:
        yield f"{shown}/fabric.json: the fabric itself has no fault; copy it from the skeleton"
        return
    yield from wrong_verdict(
        verdict_of(state_of_folder(work.path(RULES)), FlowControl.PAUSE), shown
    )
    names = [switch.name for switch in fabric.switches]
    changed = [name for name in names if before.get(name) != after.get(name)]
    if len(changed) > 1:
        yield f"{shown}: only one switch has a wrong rule, but you changed {', '.join(changed)}"
    if changed and changed != [work.answers.text("switch")]:
        yield work.answers.wrong("switch", f"you changed rules of {', '.join(changed)}")
    elif not changed:
        yield f"{shown}: no rule has been changed yet: correct the wrong one"


LAB = Lab(10, "find-the-fault", (cycle, corrected))
