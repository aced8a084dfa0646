"""The row of one run of the change experiment."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from knotless.experiments.studies.change.cases import NAIVE, Case, naive_verdict, proven_change


@dataclass(frozen=True)
class Row:
    """The results of one run.

    ``order`` are the switches in the order in which they took rules, over all steps. ``change_s``
    is from the first to the last of them, waiting for older packets included; ``deadlock_after_s``
    from the first one to the beginning of the deadlock, whose channels are ``cycle``.
    ``stopped_frames`` were dropped at admission by steps that say so; ``lost_frames`` are all
    others that did not arrive. ``tier`` and ``steps`` are those of the proven change, ``tier`` null
    for a naive one. ``predicted_cycle`` is a cycle that the static check finds in the mixtures of
    rules that can occur, empty if there is none.
    """

    on: str
    fabric: str
    flow_control: str
    way: str
    repeat: int
    seed: int
    order: list[str]
    change_s: float
    deadlock: bool
    deadlock_after_s: float | None
    cycle: list[str]
    stopped_frames: int
    lost_frames: int
    delivered_frames: int
    tier: int | None
    steps: int
    predicted_cycle: list[str]

    def as_json(self) -> dict[str, Any]:
        """Return it as a value for :func:`json.dumps`."""
        return asdict(self)


def predicted(case: Case) -> dict[str, Any]:
    """Return what is known before the run: ``tier``, ``steps`` and ``predicted_cycle``."""
    key = (case.swap, case.flow_control, case.rate_mbps)
    if case.way == NAIVE:
        return {"tier": None, "steps": 1, "predicted_cycle": naive_verdict(*key).outcome.cycle}
    change = proven_change(*key)
    cycles = [channel for step in change.steps for channel in step.proof.mixed.outcome.cycle]
    return {"tier": change.tier, "steps": len(change.steps), "predicted_cycle": cycles}
