"""Barriers of two hosts: both send a message of minimum size at the same time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from knotless.base.flow_control import FlowControl
from knotless.traffic import theory

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric
    from knotless.routing.plan import Plan

WARM_UP = 5
"""Barriers not counted, because Open vSwitch is slow with the first frame of each flow."""
BARRIERS = 200
PORT = 7
RETRY_US, PATIENCE_US = 2_000_000, 60_000_000
"""Nothing is lost with flow control on every link, so no retransmission is ever needed."""
LIMIT_S = 60.0
(SMALLEST_BYTES,) = theory.message_packets(0)
"""Payload of a frame of minimum size, tagged or not."""


def emulated(lab: EmulatedFabric, pair: tuple[str, str], barriers: int) -> list[float]:
    """Return the times (us) of barriers between processes in two hosts of a running fabric."""
    from knotless.emulation.names import NETNS_DIRECTORY
    from knotless.topologies.numbering import group_mac, mac_text
    from knotless_experiments.workloads.barriers.processes import outcomes, running

    hosts = [lab.fabric.hosts[lab.fabric.host_index[name]] for name in pair]
    rounds = [{"algorithm": "shuffle", "order": None, "barriers": barriers + WARM_UP}]
    patience = {"retry_us": RETRY_US, "patience_us": PATIENCE_US}
    work = {"barrier": {"rounds": rounds, "computing_us": 0, **patience}}

    def job(rank: int) -> dict[str, Any]:
        network = {
            "namespace": str(NETNS_DIRECTORY / lab.names.host_namespace(pair[rank])),
            "interface": lab.host(pair[rank]).defaultIntf().name,
            "members": [host.mac for host in hosts],
            "group": mac_text(group_mac(1)),  # not used by this algorithm
        }
        return {"rank": rank, "port": PORT, "networks": [network], "work": work}

    with running([job(0), job(1)], lab.program_environment()) as processes:
        reports = [outcome["rounds"][0] for outcome in outcomes(processes, LIMIT_S * lab.slow_down)]
    return [
        (left - entered) / 1000
        for of_one in reports
        for entered, left in list(zip(of_one["entered_ns"], of_one["left_ns"], strict=True))[
            WARM_UP:
        ]
    ]


def simulated(plan: Plan, pair: tuple[str, str], seed: int) -> float:
    """Return the time (us) of such a barrier if processors take no time.

    All its barriers take the same time.
    """
    from knotless_experiments.messages.logp import LogP
    from knotless_experiments.workloads.barriers.case import Settings, Testbed
    from knotless_experiments.workloads.barriers.simulated import SimulatedTestbed

    settings = Settings(
        barriers=BARRIERS,
        lists=0,
        computing_us=0.0,
        costs=LogP(0.0, 0.0, 0.0, 0.0),
        message_bytes=SMALLEST_BYTES,
        cut_through=0,
        rate_mbps=None,
        delay_us=None,
        seed=seed,
    )
    testbed = Testbed(plan.fabric.name, plan.request, networks=1)
    paused = replace(plan, request=plan.request.but(flow_control=FlowControl.PAUSE))
    place = SimulatedTestbed.from_plan(testbed, settings, paused, {})
    return place.pair(*pair).one_way_us
