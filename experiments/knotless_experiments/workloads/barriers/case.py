"""The cases of the barrier experiment: algorithms, fabrics, engines, numbers of hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from knotless.routing.plan import Plan, make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.topologies.fabric import Fabric, hosts_across_switches, with_lines
from knotless_experiments.framework.experiment import ExperimentError
from knotless_experiments.messages.logp import ALGORITHMS, LogP

NETWORKS = (1, 2)


@dataclass(frozen=True)
class Settings:
    """Settings shared by all cases. ``lists`` 0: the visiting list is the order of the ranks.

    ``costs`` are those of simulated processors (L is measured, not set); ``delay_us`` and
    ``rate_mbps`` None leave the fabric's own.
    """

    barriers: int
    lists: int
    computing_us: float
    costs: LogP
    message_bytes: int
    cut_through: int
    rate_mbps: float | None
    delay_us: float | None
    seed: int


@dataclass(frozen=True)
class Testbed:
    """A fabric and its routing; cases with the same testbed share one running fabric."""

    spec: str
    request: PlanRequest
    networks: int

    def plan(self, settings: Settings, groups: dict[int, list[str]] | None = None) -> Plan:
        """Return the plan; raises KnotlessError if there is none."""
        plan = _planned(self, settings)
        return replace(plan, request=plan.request.but(multicast=groups)) if groups else plan

    def fabric(self, settings: Settings) -> Fabric:
        """Return the fabric; raises KnotlessError if there is none."""
        return with_lines(load(self.spec), settings.rate_mbps, settings.delay_us)

    def __str__(self) -> str:
        """Describe the case for progress bars and errors."""
        engine, count = self.request.engine, self.request.vcs
        vcs = "" if count is None else f" with {count} virtual channels"
        twice = " twice" if self.networks == 2 else ""
        return f"{self.spec}{twice}, {engine}{vcs}"


@cache
def _planned(testbed: Testbed, settings: Settings) -> Plan:
    return make_plan(testbed.fabric(settings), testbed.request)


@dataclass(frozen=True)
class Case:
    """An algorithm on a number of hosts of a testbed (None: all hosts)."""

    testbed: Testbed
    algorithm: str
    hosts: int | None
    repeat: int = 1

    def __str__(self) -> str:
        """Describe the case for progress bars and errors."""
        return f"{self.algorithm} on {self.testbed}"


def members(fabric: Fabric, count: int | None) -> list[str]:
    """Return the names of the participating hosts, by rank.

    If not all take part, the first hosts of all switches are used before second ones: so the
    whole fabric is used, as in the paper. Ranks are in the order of the hosts.
    """
    wanted = len(fabric.hosts) if count is None else count
    if not 2 <= wanted <= len(fabric.hosts):
        raise ExperimentError(
            f"--hosts {wanted}: a barrier on {fabric.name} has 2 to {len(fabric.hosts)} hosts"
        )
    return [fabric.hosts[index].name for index in sorted(hosts_across_switches(fabric)[:wanted])]


def mean_switches(plan: Plan, names: list[str]) -> float:
    """Return the mean number of switches on the paths between two of the hosts."""
    lengths = [
        len(plan.path(source, target)) for source in names for target in names if source != target
    ]
    return sum(lengths) / len(lengths)


def numbers(text: str, option: str) -> list[int]:
    """Read ``2,4,8``; raises ExperimentError."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ExperimentError(
            f"{option}: {text!r} is not a list of numbers such as 2,4,8"
        ) from None


def choose(text: str | None, names: Sequence[str], option: str) -> list[str]:
    """Read a choice such as ``a,b``; None is all of ``names``. Raises ExperimentError."""
    if text is None:
        return list(names)
    chosen = [part.strip() for part in text.split(",")]
    for part in chosen:
        if part not in names:
            raise ExperimentError(f"{option}: {part!r} is none of {', '.join(names)}")
    return chosen


def cases(
    fabrics: Sequence[str],
    engines: str,
    algorithms: str | None,
    hosts: str | None,
    networks: str,
    repeats: int,
) -> list[Case]:
    """List the cases in running order, grouped by testbed."""
    counts = [None] if hosts is None else numbers(hosts, "--hosts")
    chosen = choose(algorithms, ALGORITHMS, "--algorithms")
    how_many = numbers(networks, "--networks")
    for count in how_many:
        if count not in NETWORKS:
            raise ExperimentError(f"--networks {count}: hosts are on 1 network or on 2")
    testbeds = [
        Testbed(spec, PlanRequest.from_name(engine.strip()), count)
        for spec in fabrics
        for engine in engines.split(",")
        for count in how_many
    ]
    return [
        Case(testbed, algorithm, count, repeat)
        for testbed in testbeds
        for algorithm in chosen
        for count in counts
        for repeat in range(1, repeats + 1)
    ]
