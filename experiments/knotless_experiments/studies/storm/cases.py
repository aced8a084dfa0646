"""The cases of the storm experiment: fabric, traffic, and what protects against storms."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from knotless.base.name_lists import LONGEST_QUOTE, choice, names_in
from knotless.simulation import PauseLimit
from knotless.simulation.settings import NO_PAUSE_LIMIT
from knotless.topologies.fabric import Fabric
from knotless_experiments.framework.experiment import Common, ExperimentError
from knotless_experiments.framework.routed import Routed, with_options

FABRICS = ("torus,4,4", "fattree3,4")
ALL_TO_ALL, PERMUTATION = "all-to-all", "permutation"
TRAFFIC = (ALL_TO_ALL, PERMUTATION)
NONE, LIMIT = "none", "limit"
ACTIONS = {
    "drop": "drop",
    "drop-egress": "drop what waits",
    "forward": "forward",
}
"""What a watchdog does, in words."""
DEFAULT_PROTECTIONS = (
    *("none", "drop:10", "drop:100", "drop:200", "drop-egress:10", "drop-egress:100"),
    *("forward:100", "limit:500"),
)
QUICK_PROTECTIONS = ("none", "drop:10", "limit:20")
RATE_MBPS = 1000.0
LIMITS_MBPS = (1.0, 1e6)
LONGEST_MS = 1e5
LEAST_HOSTS, MOST_HOSTS = 3, 256


@dataclass(frozen=True)
class Protection:
    """A protection against storms.

    ``kind`` is none, a watchdog of all switches that detects a storm after ``ms`` and then drops
    or forwards, or a limit of hosts' pauses, of at most ``ms`` at once.
    """

    kind: str
    ms: float = 0.0

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of :class:`knotless.simulation.Scenario` that protect so."""
        if self.kind == LIMIT:
            return {"pause_limit": PauseLimit(longest_us=1000 * self.ms)}
        if self.kind == NONE:
            return {"pause_limit": NO_PAUSE_LIMIT}
        watchdog = {"watchdog_us": 1000 * self.ms, "watchdog_action": self.kind}
        return {**watchdog, "pause_limit": NO_PAUSE_LIMIT}

    @property
    def words(self) -> str:
        """The protection in a sentence."""
        if self.kind == NONE:
            return "without protection"
        if self.kind == LIMIT:
            return f"with hosts limited to {self.ms:g} ms at once"
        return f"with watchdogs that {ACTIONS[self.kind]} after {self.ms:g} ms"

    def __str__(self) -> str:
        """Return the name, as it is given."""
        return self.kind if self.kind == NONE else f"{self.kind}:{self.ms:g}"


def protection_named(text: str) -> Protection:
    """Return the protection of that name; raises ExperimentError."""
    kind, colon, number = text.partition(":")
    if text == NONE:
        return Protection(NONE)
    try:
        ms = float(number)
    except ValueError:
        ms = math.nan
    if not (colon and kind in (*ACTIONS, LIMIT) and 0.01 <= ms <= LONGEST_MS):
        raise ExperimentError(
            f"--protection: {text[:LONGEST_QUOTE]!r} is not none, drop:MS, drop-egress:MS,"
            f" forward:MS or limit:MS, with 0.01 to {LONGEST_MS:g} milliseconds"
        )
    return Protection(kind, ms)


@dataclass(frozen=True)
class Case:
    """One run."""

    routed: Routed
    traffic: str
    protection: Protection
    repeat: int = 1

    @property
    def host(self) -> str:
        """The host that pauses its link: the first one."""
        return self.routed.fabric.hosts[0].name

    def __str__(self) -> str:
        """Describe the case for progress bars."""
        return f"{self.routed.name}, {self.traffic}, {self.protection}, run {self.repeat}"


def pairs_of(traffic: str, fabric: Fabric, seed: int) -> list[tuple[int, int]]:
    """Return the flows (source, destination), by index; each host sends to another one.

    A permutation is one round through all hosts in random order.
    """
    count = len(fabric.hosts)
    if traffic == ALL_TO_ALL:
        return [(a, b) for a in range(count) for b in range(count) if a != b]
    order = list(range(count))
    random.Random(seed).shuffle(order)  # noqa: S311 - not for secrets
    return sorted(zip(order, [*order[1:], order[0]], strict=True))


def cases(common: Common, options: Mapping[str, Any], delay_us: float) -> list[Case]:
    """List the cases; all plans are made, so that none fails later. Raises KnotlessError."""
    specs: Sequence[str] = options.get("fabric") or FABRICS[: 1 if common.quick else None]
    traffics = choice(
        options.get("traffic"), TRAFFIC, "--traffic", TRAFFIC[:1] if common.quick else None
    )
    default = QUICK_PROTECTIONS if common.quick else DEFAULT_PROTECTIONS
    protections = [protection_named(name) for name in names_in(options.get("protection"), default)]
    rate_mbps = RATE_MBPS if common.rate_mbps is None else common.rate_mbps
    if not LIMITS_MBPS[0] <= rate_mbps <= LIMITS_MBPS[1]:
        raise ExperimentError(
            f"--rate: {rate_mbps:g} is not within {LIMITS_MBPS[0]:g}..{LIMITS_MBPS[1]:g} Mbit/s"
        )
    routes = [Routed(with_options(spec, rate=rate_mbps, delay=delay_us)) for spec in specs]
    for routed in routes:
        hosts = len(routed.plan.fabric.hosts)
        if not LEAST_HOSTS <= hosts <= MOST_HOSTS or routed.fabric.hub is not None:
            raise ExperimentError(
                f"--fabric: {routed.name} has {hosts} hosts; a storm is measured on switches with"
                f" {LEAST_HOSTS} to {MOST_HOSTS} hosts"
            )
    return [
        Case(routed, traffic, protection, repeat)
        for routed in routes
        for traffic in traffics
        for protection in protections
        for repeat in range(1, common.repeats + 1)
    ]
