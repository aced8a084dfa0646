"""Metrics for Prometheus: counters that others increase, and gauges read from the status.

Nothing is global: each controller makes its own, and hands them to those who count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from knotless.controller.probes.deaf import DEAF
from knotless.controller.probes.paths import Fault
from knotless.controller.rest.api import Response
from knotless.controller.status import Status
from knotless.topologies.failures import pairs_apart

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
DEAD_SWITCH = "dead switch"
FAULTS: tuple[str, ...] = (*get_args(Fault), DEAD_SWITCH, DEAF)
_INSTALL_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of one controller; ``now_s`` is its clock."""

    def __init__(self, status: Status, now_s: Callable[[], float]) -> None:
        registry = self._registry = CollectorRegistry()
        self.changes = Counter(
            "knotless_rule_changes",
            "Rules and groups added, modified and deleted in switches.",
            ["command"],
            registry=registry,
        )
        self.install_s = Histogram(
            "knotless_install_seconds",
            "Time from reading a switch's rules to its last barrier reply.",
            buckets=_INSTALL_BUCKETS_S,
            registry=registry,
        )
        self.dropped = Counter(
            "knotless_dropped_messages",
            "Packets and echo requests of switches above the allowed rate.",
            registry=registry,
        )
        self.closed = Counter(
            "knotless_closed_connections",
            "Connections that were closed because of what they sent, or refused.",
            registry=registry,
        )
        self.reloads = Counter(
            "knotless_reloads",
            "Reloads of the configuration, by result: unchanged, changed, refused.",
            ["result"],
            registry=registry,
        )
        self.route_change_s = Histogram(
            "knotless_route_change_seconds",
            "Time from the failure or request to the last barrier reply, by tier.",
            ["tier"],
            buckets=_INSTALL_BUCKETS_S,
            registry=registry,
        )
        self.dropped_pairs = Counter(
            "knotless_change_dropped_pairs",
            "Pairs of hosts whose frames changes of routes have dropped at admission.",
            registry=registry,
        )
        self.dropped_s = Counter(
            "knotless_change_dropping_seconds",
            "Time in which changes of routes dropped frames of some pairs at admission.",
            registry=registry,
        )
        registry.register(_Gauges(status, now_s))

    def response(self) -> Response:
        """Return the answer to ``GET /metrics``."""
        return Response(generate_latest(self._registry), CONTENT_TYPE)


class _Gauges(Collector):
    """Values of the status at the moment at which they are asked for."""

    def __init__(self, status: Status, now_s: Callable[[], float]) -> None:
        self._status, self._now_s = status, now_s

    def collect(self) -> Iterator[Metric]:
        """Yield all of them."""
        state = self._status.state
        desired, observed = state.desired, state.observed
        switches = observed.switches.values()
        down = len(observed.links_down())
        yield _gauge(
            "knotless_switches",
            "Switches that are declared, connected, and that hold exactly their rules.",
            {
                "declared": len(switches),
                "connected": sum(switch.connected for switch in switches),
                "installed": sum(switch.installed for switch in switches),
            },
        )
        yield _gauge(
            "knotless_links",
            "Links between switches.",
            {"up": len(observed.fabric.links) - down, "down": down},
        )
        kinds = [
            *observed.link_faults.values(),
            *(DEAD_SWITCH for _ in observed.switches_down()),
            *(DEAF for _ in observed.deaf),
        ]
        yield _gauge(
            "knotless_faults",
            "Links with a carrier that probes have found faulty, dead and deaf switches, by kind.",
            {kind: kinds.count(kind) for kind in FAULTS},
            label="kind",
        )
        yield GaugeMetricFamily(
            "knotless_unreachable_pairs",
            "Ordered pairs of hosts that cannot reach each other because of failures.",
            pairs_apart(observed.separated()),
        )
        yield GaugeMetricFamily(
            "knotless_rules", "Rules wanted on all switches.", desired.rule_count
        )
        yield CounterMetricFamily(
            "knotless_frames_not_admitted",
            "Frames that switches dropped because their port may not send them.",
            state.unadmitted.total,
        )
        yield GaugeMetricFamily(
            "knotless_dropping_pairs",
            "Pairs of hosts whose frames a step of a change drops now.",
            state.update.progress.dropping,
        )
        yield GaugeMetricFamily(
            "knotless_active",
            "Whether this controller changes rules: 1, or 0 while another one is active.",
            int(state.leads),
        )
        if self._status.stretch is not None:
            yield GaugeMetricFamily(
                "knotless_stretch",
                "Real over virtual time of emulated links, in the last one to two seconds.",
                self._status.stretch,
            )
        if self._status.is_deadlocked is not None:
            yield GaugeMetricFamily(
                "knotless_deadlock",
                "Whether emulated links are deadlocked: 1, or 0.",
                int(self._status.is_deadlocked),
            )
        problems = self._status.problems(self._now_s()) + self._status.link_problems
        yield GaugeMetricFamily(
            "knotless_problems",
            "Problems of GET /status, those of emulated links included.",
            len(problems),
        )


def _gauge(name: str, text: str, values: dict[str, int], label: str = "state") -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for state, value in values.items():
        family.add_metric([state], value)
    return family
