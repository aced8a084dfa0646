"""One run: a world, its faults, and whether anything was violated; smaller lists of faults."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.seeded.faults import KINDS, Fault, drawn, perform
from tests.seeded.world import Setting, Violation, World

FAULTS_S = 30.0
"""Faults begin within this time from the start."""
CALM_S = 90.0
"""After that, a fabric must be settled within this time."""


MAX_KEPT = 8
"""Violations of a run that are kept as text."""


@dataclass
class Result:
    """What came of a run."""

    setting: Setting
    faults: list[Fault]
    digest: str
    violations: list[Violation]
    lines: list[str]
    settled_s: float
    simulated_s: float
    processor_s: float
    judged: int
    is_suspended: bool
    """Whether the controller waits for ever, as it may."""
    served_after_s: dict[str, float]
    """By kind of the last fault: the longest time until all that is connected was served."""

    def as_json(self) -> dict[str, Any]:
        """Return what is kept of a run."""
        setting = self.setting
        return {
            "seed": setting.seed,
            "fabric": setting.fabric,
            "controllers": setting.controllers,
            "options": setting.options,
            "emulator": setting.emulator,
            "judged": setting.judged,
            "simulated_s": round(self.simulated_s, 3),
            "processor_s": round(self.processor_s, 3),
            "faults": dict(sorted(Counter(fault.kind for fault in self.faults).items())),
            "suspended": self.is_suspended,
            "settled_s": round(self.settled_s, 3),
            "served_after_s": {
                kind: round(seconds, 3) for kind, seconds in sorted(self.served_after_s.items())
            },
            "violations": [[each.kind, str(each)] for each in self.violations[:MAX_KEPT]],
            "violated": len(self.violations),
            "digest": self.digest,
        }


def run(
    setting: Setting,
    faults: Sequence[Fault] | None = None,
    *,
    kinds: Sequence[str] = tuple(KINDS),
    seconds: float = FAULTS_S,
    stop_at_first: bool = False,
) -> Result:
    """Run a setting with its own faults, or with given ones.

    ``stop_at_first``: only until an invariant is violated; see :attr:`Violation.is_of_invariant`.
    """

    def is_over() -> bool:
        return stop_at_first and any(each.is_of_invariant for each in world.violations)

    world = World(setting)
    began_s = time.process_time()
    with world.running():
        chosen = drawn(world, kinds, seconds) if faults is None else list(faults)
        for fault in chosen:
            world.at(fault.at_s, perform, world, fault)
        end_s = world.start_s + seconds
        while world.hub.now_s < end_s and not is_over():
            world.hub.sleep_outside(0.5)
            world.service.judge()
        settled_s = 0.0
        if not is_over():
            world.heal()
            settled_s = world.service.settle(CALM_S)
        for error in world.hub.failures:
            world.violated("exception", "the world", repr(error))
        simulated_s = world.hub.now_s - world.start_s
    return Result(
        setting,
        chosen,
        world.digest,
        world.violations,
        world.lines,
        settled_s,
        simulated_s,
        time.process_time() - began_s,
        world.judge.judged,
        world.service.is_suspended,
        world.service.served_after_s,
    )


def shrunk(
    setting: Setting,
    faults: Sequence[Fault],
    kind: str,
    report: Callable[[str], None] = lambda _line: None,
) -> list[Fault]:
    """Return a list of faults as short as possible with which a violation of a kind is left."""

    def fails(some: Sequence[Fault]) -> bool:
        last_s = max((fault.at_s + fault.seconds for fault in some), default=0.0)
        result = run(setting, some, seconds=min(FAULTS_S, last_s + 10))
        return any(violation.kind == kind for violation in result.violations)

    left, size = list(faults), max(1, len(faults) // 2)
    while True:
        at = 0
        while at < len(left):
            fewer = left[:at] + left[at + size :]
            if fails(fewer):
                left = fewer
                report(f"{len(left)} faults are left")
            else:
                at += size
        if size == 1:
            return left
        size = max(1, size // 2)
