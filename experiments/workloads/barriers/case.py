"""What the barrier experiment runs: algorithms on fabrics, by engines, on so many hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

from experiments.framework.experiment import ExperimentError
from experiments.framework.routed import request_of
from experiments.workloads.logp import ALGORITHMS, LogP
from routing.plan import Plan, make_plan
from routing.request import PlanRequest
from topologies import load
from topologies.fabric import Fabric, Host, Link

NETWORKS = (1, 2)
Part = TypeVar("Part", Host, Link)


@dataclass(frozen=True)
class Settings:
    """What all cases of a run share. ``lists`` 0: the visiting list is the order of the ranks.

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
class Ground:
    """A fabric and how it is routed: cases on the same ground share what is built."""

    spec: str
    request: PlanRequest
    networks: int

    def plan(self, settings: Settings, groups: dict[int, list[str]] | None = None) -> Plan:
        """Return the plan; raises KnotlessError where there is none."""
        plan = _planned(self, settings)
        return replace(plan, request=plan.request.but(multicast=groups)) if groups else plan

    def fabric(self, settings: Settings) -> Fabric:
        """Return the fabric; raises KnotlessError where there is none."""
        return lines(load(self.spec), settings.rate_mbps, settings.delay_us)

    def __str__(self) -> str:
        """Return it as a reader meets it in progress bars and errors."""
        engine, count = self.request.engine, self.request.vcs
        vcs = "" if count is None else f" with {count} virtual channels"
        twice = " twice" if self.networks == 2 else ""
        return f"{self.spec}{twice}, {engine}{vcs}"


@cache
def _planned(ground: Ground, settings: Settings) -> Plan:
    return make_plan(ground.fabric(settings), ground.request)


@dataclass(frozen=True)
class Case:
    """One algorithm on so many hosts of a ground (None: all of them)."""

    ground: Ground
    algorithm: str
    hosts: int | None
    repeat: int = 1

    def __str__(self) -> str:
        """Return it as a reader meets it in progress bars and errors."""
        return f"{self.algorithm} on {self.ground}"


def lines(fabric: Fabric, rate_mbps: float | None, delay_us: float | None) -> Fabric:
    """Return ``fabric`` with every link at the rate and the delay that are stated."""

    def changed(part: Part) -> Part:
        rate = part.rate_mbps if rate_mbps is None else rate_mbps
        delay = part.delay_us if delay_us is None else delay_us
        return replace(part, rate_mbps=rate, delay_us=delay)

    hosts = tuple(changed(host) for host in fabric.hosts)
    return replace(fabric, hosts=hosts, links=tuple(changed(link) for link in fabric.links))


def members(fabric: Fabric, count: int | None) -> list[str]:
    """Return the names of the hosts that take part, by rank.

    Of fewer than all, every switch gives its first before any gives its second: so the
    whole fabric is used, as in the paper. Ranks are in the order of the hosts.
    """
    wanted = len(fabric.hosts) if count is None else count
    if not 2 <= wanted <= len(fabric.hosts):
        raise ExperimentError(
            f"--hosts {wanted}: a barrier on {fabric.name} has 2 to {len(fabric.hosts)} hosts"
        )
    place = {
        host.name: (rank, fabric.host_index[host.name])
        for at in fabric.hosts_at.values()
        for rank, host in enumerate(at.values())
    }
    chosen = sorted(place, key=place.__getitem__)[:wanted]
    return sorted(chosen, key=fabric.host_index.__getitem__)


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
        raise ExperimentError(f"{option}: {text!r} is no list of numbers such as 2,4,8") from None


def choose(text: str | None, known: Sequence[str], option: str) -> list[str]:
    """Read a choice such as ``a,b``; None is all of ``known``. Raises ExperimentError."""
    if text is None:
        return list(known)
    chosen = [part.strip() for part in text.split(",")]
    for part in chosen:
        if part not in known:
            raise ExperimentError(f"{option}: {part!r} is none of {', '.join(known)}")
    return chosen


def cases(
    fabrics: Sequence[str],
    engines: str,
    algorithms: str | None,
    hosts: str | None,
    networks: str,
    repeats: int,
) -> list[Case]:
    """List the cases in running order: all on one ground after the other."""
    counts = [None] if hosts is None else numbers(hosts, "--hosts")
    chosen = choose(algorithms, ALGORITHMS, "--algorithms")
    how_many = numbers(networks, "--networks")
    for count in how_many:
        if count not in NETWORKS:
            raise ExperimentError(f"--networks {count}: hosts are on 1 network or on 2")
    grounds = [
        Ground(spec, request_of(engine.strip()), count)
        for spec in fabrics
        for engine in engines.split(",")
        for count in how_many
    ]
    return [
        Case(ground, algorithm, count, repeat)
        for ground in grounds
        for algorithm in chosen
        for count in counts
        for repeat in range(1, repeats + 1)
    ]
