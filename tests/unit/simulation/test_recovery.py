"""Recovery of lost packets: go-back-N and selective, on lines and queues that lose frames."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.base.errors import SimulationError
from knotless.base.switch_settings import SwitchFile
from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.simulation import Buffers, LinkChange, Load, Result, Scenario, simulate
from knotless.simulation.result import by_flow
from knotless.simulation.transport import (
    Dcqcn,
    GoBackN,
    Recovery,
    Selective,
    Transport,
    transport_of,
)
from knotless.simulation.workload import CollectiveRun, Flows, Incast
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.traffic.patterns.pattern import pattern_of

KINDS = [GoBackN(), Selective()]
PAIR = pattern_of("pair", "to the other", [(0, 1)])
INCAST = Flows(incast=Incast(8, 150_000, "h1", every_us=5000.0, count=5))


def row(loss: float = 0.0) -> Fabric:
    """Return two hosts on two switches, whose link loses frames in both directions."""
    fabric = load("mesh,2,1,rate=10000,delay=5")
    return replace(fabric, links=(replace(fabric.links[0], loss=loss),))


def run(fabric: Fabric, recovery: Recovery | None, pattern: Any = PAIR, **more: Any) -> Result:
    settings: dict[str, Any] = {"load": Load(), "flow_control": "none"} | more
    transport = None if recovery is None else Transport(recovery=recovery)
    transport = settings.pop("transport", transport)
    plan = make_plan(fabric, "updown")
    return simulate(Scenario(plan, pattern, transport=transport, **settings))


@pytest.mark.parametrize("recovery", KINDS)
def test_without_losses_nothing_is_sent_again(recovery: Recovery) -> None:
    result = run(row(), recovery, duration_us=5000.0)
    values = result.summary()
    assert values["retransmitted_frames"] == 0
    assert values["transport"] == [recovery.name]
    assert result.throughput_mbps > 0.97 * 10_000 * 1500 / 1542


@pytest.mark.parametrize("window", [1, 4, 10])
def test_a_window_bounds_the_rate(window: int) -> None:
    """So many packets for each time there and back."""
    more: dict[str, Any] = {"flow_control": "pfc", "warm_up_us": 500.0, "duration_us": 20_500.0}
    result = run(row(), Selective(window=window), **more)
    data_us = 8 * (1538 + 1542 + 1538) / 1e4 + 3 * 5
    answer_us = 8 * (84 + 88 + 84) / 1e4 + 3 * 5
    expected_mbps = window * 8 * 1500 / (data_us + answer_us)
    assert result.throughput_mbps == pytest.approx(expected_mbps, rel=0.01)


@pytest.mark.parametrize("loss", [0.001, 0.01, 0.05])
def test_selective_sends_again_what_is_lost(loss: float) -> None:
    more: dict[str, Any] = {"load": Load("acknowledged", message_bytes=15_000_000)}
    result = run(row(loss), Selective(), **more)
    values = result.summary()
    assert values["messages"] == 1
    assert values["lost_frames"] > 0
    # A lost answer can make a packet be sent again that has arrived, and a timeout at the end some.
    answers_lost = values["drops"]["loss"] - values["lost_frames"]
    extra = values["retransmitted_frames"] - values["lost_frames"]
    assert 0 <= extra <= answers_lost + 3 * 128
    assert values["packets"] == 10_000


def test_go_back_n_wastes_a_round_trip_for_each_loss() -> None:
    """The share that arrives in order: (1 - p) / (1 + p n), for n packets in a round trip."""
    loss, timeout_us = 0.003, 320.0
    more: dict[str, Any] = {"flow_control": "pfc", "warm_up_us": 1000.0, "duration_us": 201_000.0}
    result = run(row(loss), GoBackN(), **more)
    packet_us = 8 * 1542 / 1e4
    round_trip_us = 8 * (1538 + 1542 + 1538 + 84 + 88 + 84) / 1e4 + 6 * 5
    # If the rejection or the packet that is sent again is lost, a timeout follows.
    wasted = round_trip_us / packet_us + 2 * loss * timeout_us / packet_us
    expected_mbps = 10_000 * 1500 / 1542 * (1 - loss) / (1 + loss * wasted)
    assert result.throughput_mbps == pytest.approx(expected_mbps, rel=0.03)
    better = run(row(loss), Selective(), **more)
    assert better.throughput_mbps == pytest.approx(10_000 * 1500 / 1542 * (1 - loss), rel=0.01)


@pytest.mark.parametrize("recovery", KINDS)
def test_an_incast_into_a_short_queue_is_delivered(recovery: Recovery) -> None:
    fabric = load("flat,9,rate=10000,delay=1")
    more: dict[str, Any] = {"workload": INCAST, "buffers": Buffers(queue=30_000)}
    lossy = run(fabric, None, **more).summary()
    assert lossy["messages"] < 40
    result = run(fabric, recovery, **more)
    values = result.summary()
    assert values["messages"] == 40
    assert values["messages_under_way"] == values["in_network"] == 0
    assert values["drops"]["queue"] > 0
    # Frames of acknowledgements may be lost, too.
    assert values["retransmitted_frames"] >= values["lost_frames"] > 0
    assert result.completions is not None
    assert result.completions.bytes.tolist() == [150_000] * 40
    rows = by_flow(result)
    assert sum(row["bytes"] for row in rows) == 40 * 150_000
    assert sum(row["retransmitted_frames"] for row in rows) == values["retransmitted_frames"]


def test_priorities_that_are_lossy_under_pfc_are_recovered() -> None:
    settings = SwitchFile.model_validate(
        {"lossless": [], "egress": [{"priorities": [0], "limit_bytes": 30_000}]}
    )
    fabric = load("flat,9,rate=10000,delay=1")
    more: dict[str, Any] = {"workload": INCAST, "switch_settings": settings}
    values = run(fabric, Selective(), flow_control="pfc", **more).summary()
    assert values["messages"] == 40
    assert values["pauses"] == 0
    assert values["drops"]["queue"] > 0


def test_rates_are_controlled_where_packets_are_recovered() -> None:
    settings = SwitchFile.model_validate(
        {"ecn": [{"priorities": [0], "kmin_bytes": 5000, "kmax_bytes": 100_000, "pmax": 0.1}]}
    )
    fabric = load("flat,9,rate=10000,delay=1")
    sink = pattern_of("sink", "to the first", [(host, 0) for host in range(1, 9)])
    more: dict[str, Any] = {"warm_up_us": 2000.0, "duration_us": 22_000.0}
    alone = run(fabric, Selective(), sink, switch_settings=settings, **more).summary()
    both = Transport(control=Dcqcn(), recovery=Selective())
    values = run(fabric, None, sink, transport=both, switch_settings=settings, **more).summary()
    assert values["transport"] == ["dcqcn", "selective"]
    assert values["cnps"] > 0
    assert values["lost_frames"] < 0.1 * alone["lost_frames"]
    assert values["throughput_mbps"] > 0.9 * 10_000 * 1500 / 1538


@pytest.mark.parametrize("recovery", KINDS)
def test_collectives_and_acknowledged_messages_end(recovery: Recovery) -> None:
    fabric = replace(load("ring,4,rate=10000,delay=1"))
    fabric = replace(fabric, links=tuple(replace(link, loss=0.02) for link in fabric.links))
    ring = run(fabric, recovery, workload=CollectiveRun("ring-allreduce", 400_000))
    assert ring.program_us is not None
    done = run(fabric, recovery, "shift:1", load=Load("acknowledged", 1.0, 40_000, 30))
    assert done.summary()["messages"] == 120
    assert done.summary()["lost_frames"] > 0


@pytest.mark.parametrize("recovery", KINDS)
def test_a_queue_pair_that_reaches_nobody_stops(recovery: Recovery) -> None:
    fabric = row()
    cut = LinkChange(100.0, f"s1:{fabric.links[0].a_port}", up=False)
    load_ = Load("acknowledged", message_bytes=15_000_000)
    few = replace(recovery, retries=3, rto_us=400.0)
    values = run(fabric, few, load=load_, link_changes=(cut,)).summary()
    assert values["messages"] == 0
    assert values["messages_under_way"] == 1
    # Timeouts of 400, 800, 1600 and 3200 us after the last acknowledgement, and no more.
    assert 6100 <= values["simulated_us"] < 6300
    repaired = (cut, replace(cut, at_us=700.0, up=True))
    assert run(fabric, few, load=load_, link_changes=repaired).summary()["messages"] == 1


@pytest.mark.parametrize("recovery", KINDS)
def test_a_seed_gives_one_result(recovery: Recovery) -> None:
    hashes = [
        run(row(0.01), kind, duration_us=2000.0, seed=seed).result_sha256
        for kind, seed in [(recovery, 1), (recovery, 1), (recovery, 2), (None, 1)]
    ]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["go-back-n", "selective"], "transport selective: go-back-n is given already"),
        (["selective,window=0"], "selective: window must be 1 to 65000 packets, not 0"),
        (["selective,window=65001"], "window must be 1 to 65000"),
        (["go-back-n,retries=-1"], "go-back-n: retries must be 0 or more, not -1"),
        (["go-back-n,rto_us=0"], "go-back-n: rto_us must be over 0"),
        (["go-back-n,g=1"], "'g=1' must be KEY=VALUE with one of rto_us, window, retries"),
    ],
)
def test_recoveries_that_are_not_possible_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        transport_of(texts)


def test_the_command_combines_both() -> None:
    arguments = ["simulate", "flat,9,rate=10000,delay=1", "--incast", "8:100000", "--json"]
    arguments += ["--flow-control", "none", "--transport", "dcqcn", "--transport", "go-back-n"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    values = json.loads(done.output)
    assert values["transport"] == ["dcqcn", "go-back-n"]
    assert values["messages"] == 8
    assert values["retransmitted_frames"] > 0
