"""Messages between two hosts on a line of switches, emulated or simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from knotless.base.flow_control import FlowControl
from knotless.topologies.fabric import Fabric
from knotless.traffic import theory
from knotless.traffic.flows import channels_of, lines, path_us
from knotless.traffic.patterns.pattern import pattern_of
from knotless_experiments.framework.experiment import EMULATION, SIMULATION, ExperimentError
from knotless_experiments.framework.routed import Measured, Routed, in_simulation, with_validity
from knotless_experiments.messages.exchange import Messenger, warm_up_s
from knotless_experiments.studies.hops import barrier
from knotless_experiments.studies.hops.columns import COLUMNS
from knotless_experiments.workloads import open_loop

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

BARRIERS_LIMITS = (20, 2000)
"""Fewest and most barriers of an emulated case; in between, as many as fit into its duration."""
MESSAGES = 200
"""Messages of a simulated case; all take the same time, because there is no other traffic."""
UNTAGGED = "none"
TAGGINGS = ("switch", "host", UNTAGGED)

MESSAGES_ONE_BY_ONE, BOTH_WAYS, BARRIER = "messages", "both-ways", "barrier"
MEASURES = (MESSAGES_ONE_BY_ONE, BOTH_WAYS, BARRIER)


@dataclass(frozen=True)
class Case:
    """A message size, and a number of switches; ``tagging`` none means plain forwarding.

    ``measure``: from one host to the other, in both directions at the same time, or a barrier of
    the two hosts, which has no size.
    """

    routed: Routed
    measure: str
    tagging: str
    switches: int
    message_bytes: int
    repeat: int

    def __str__(self) -> str:
        """Describe the case for progress bars."""
        what = BARRIER if self.measure == BARRIER else f"{self.message_bytes} B, {self.measure}"
        return f"{self.switches} switches, tagging {self.tagging}, {what}"

    @property
    def pair(self) -> tuple[str, str]:
        """The first host of the first switch, and the last host of the last switch."""
        by_switch = [list(ports.values()) for ports in self.routed.fabric.hosts_at.values()]
        return by_switch[0][0].name, by_switch[self.switches - 1][-1].name

    @property
    def flows(self) -> list[tuple[str, str]]:
        """Sources and destinations."""
        source, target = self.pair
        return [(source, target), (target, source)][: 2 if self.measure == BOTH_WAYS else 1]

    @property
    def theory_us(self) -> float:
        """The time from message to acknowledgement, or of a barrier, without the hosts' own time.

        Other traffic is not included: with messages in both directions, a message may wait for an
        acknowledgement, and an acknowledgement for a message.
        """
        plan, line_of = self.routed.plan, lines(self.routed.fabric)
        source, target = self.pair
        total = 0.0
        there, back = (source, target, self.message_bytes), (target, source, 0)
        for a, b, size in (there, back) if self.measure != BARRIER else (there,):
            path = [line_of[channel] for channel in (a, *channels_of(plan, a, b))]
            packets = theory.message_packets(size)
            total += path_us(path, packets, tagged=self.tagging != UNTAGGED)
        return total


def plain_rules(fabric: Fabric) -> dict[str, list[str]]:
    """Return each switch's rules for plain forwarding by destination, without VLANs.

    A line of switches has no loop, so each destination has exactly one port.
    """
    order = {switch.name: place for place, switch in enumerate(fabric.switches)}
    rules: dict[str, list[str]] = {}
    for switch, place in order.items():
        ways = {order[peer]: port for port, (peer, _) in fabric.neighbours[switch].items()}
        rules[switch] = []
        for host in fabric.hosts:
            there = order[host.switch]
            step = place + (there > place) - (there < place)
            port = host.port if there == place else ways[step]
            rules[switch].append(f"dl_dst={host.mac},actions=output:{port}")
    return rules


def install_plain(lab: EmulatedFabric) -> None:
    """Install the rules of :func:`plain_rules` in the running switches, unless they have them."""
    last = lab.fabric.switches[-1].name
    if "dl_dst=" in lab.net[last].dpctl("dump-flows"):
        return
    for switch, rules in plain_rules(lab.fabric).items():
        for rule in rules:
            output = lab.net[switch].dpctl("add-flow", rule)
            if output.strip():
                raise ExperimentError(f"{switch}: rule {rule!r} is refused: {output.strip()}")


def emulated(lab: EmulatedFabric, case: Case, *, duration_s: float) -> Measured:
    """Run a case on a running fabric."""
    if case.tagging == UNTAGGED:
        install_plain(lab)
    problems = open_loop.settle(lab.daemon, FlowControl.PAUSE)
    if case.measure == BARRIER:
        fewest, most = BARRIERS_LIMITS
        fitting = round(duration_s * 1e6 / case.theory_us)
        times_us = barrier.emulated(lab, case.pair, min(max(fitting, fewest), most))
    else:
        begin_s = warm_up_s(case.theory_us)
        with Messenger(lab) as messenger:
            # Open vSwitch is slow with the first frame of a flow, which is not to be measured.
            messenger.acknowledged(case.flows, case.message_bytes, 0.0, begin_s)
            problems += open_loop.settle(lab.daemon, FlowControl.PAUSE)
            by_flow = messenger.acknowledged(case.flows, case.message_bytes, duration_s, begin_s)
        times_us = [time_us for of_flow in by_flow for time_us in of_flow]
    status, counters = lab.daemon.status(), lab.daemon.counters()
    if not times_us:
        raise ExperimentError(f"{case}: no message came back in {duration_s:g} s")
    row = _row(case, EMULATION, times_us, lost_frames=int(counters["lost_frames"]))
    return with_validity(row, status, problems), _samples(row, times_us)


def simulated(case: Case, *, seed: int) -> Measured:
    """Run a case in the simulator."""
    if case.measure == BARRIER:
        time_us = barrier.simulated(case.routed.plan, case.pair, seed)
        row = _row(case, SIMULATION, [time_us], lost_frames=0, messages=barrier.BARRIERS)
        return in_simulation(row), _samples(row, [time_us])
    from knotless.simulation import Load, Scenario, simulate

    index = case.routed.fabric.host_index
    packets = theory.message_packets(case.message_bytes)
    result = simulate(
        Scenario(
            case.routed.plan,
            pattern_of("pair", "two hosts", [(index[a], index[b]) for a, b in case.flows]),
            Load("acknowledged", message_bytes=sum(packets), messages=MESSAGES),
            packet_bytes=theory.MTU_BYTES,
            seed=seed,
        )
    )
    completion = result.report.completion
    times_us = [completion.min_ps / 1e6, completion.mean_ps / 1e6, completion.max_ps / 1e6]
    row = _row(
        case,
        SIMULATION,
        times_us,
        lost_frames=result.lost_frames,
        messages=completion.total,
        sha256=result.result_sha256,
    )
    return in_simulation(row), _samples(row, times_us)


def _row(
    case: Case,
    on: str,
    times_us: list[float],
    *,
    lost_frames: int,
    messages: int | None = None,
    sha256: str | None = None,
) -> dict[str, Any]:
    mean_us = fmean(times_us)
    host = case.routed.fabric.hosts[0]
    return COLUMNS.row(
        on=on,
        measure=case.measure,
        tagging=case.tagging,
        switches=case.switches,
        message_bytes=case.message_bytes,
        rate_mbps=host.rate_mbps,
        delay_us=host.delay_us,
        repeat=case.repeat,
        messages=messages if messages is not None else len(times_us),
        mean_us=round(mean_us, 2),
        p50_us=round(median(times_us), 2),
        min_us=round(min(times_us), 2),
        max_us=round(max(times_us), 2),
        theory_us=round(case.theory_us, 2),
        bandwidth_mbps=round(8 * len(case.flows) * case.message_bytes / mean_us, 5),
        latency_us=round(mean_us / 2, 2),
        lost_frames=lost_frames,
        result_sha256=sha256,
    )


def _samples(row: Mapping[str, Any], times_us: list[float]) -> list[dict[str, Any]]:
    return [{**COLUMNS.head(row), "time_us": time_us} for time_us in times_us]
