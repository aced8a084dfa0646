"""Transports of hosts: control of sending rates, and how it is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.base.errors import SimulationError
from knotless.base.switch_settings import SwitchFile
from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.simulation import Buffers, Load, Result, Scenario, simulate
from knotless.simulation.result import by_flow
from knotless.simulation.transport import (
    Dcqcn,
    GoBackN,
    Nscc,
    Recovery,
    Selective,
    Transport,
    transport_of,
)
from knotless.simulation.workload import CollectiveRun, Flows, Incast
from knotless.topologies import load
from knotless.traffic.patterns.pattern import pattern_of

ECN = SwitchFile.model_validate(
    {"ecn": [{"priorities": [0], "kmin_bytes": 5000, "kmax_bytes": 200_000, "pmax": 0.01}]}
)
DCQCN = Transport(control=Dcqcn())
SINK = pattern_of("sink", "to the last", [(0, 3), (1, 3), (2, 3)])
FLAT = "flat,4,rate=40000,delay=1"


def run(transport: Transport | None, spec: str = FLAT, **more: Any) -> Result:
    settings: dict[str, Any] = {
        "pattern": SINK,
        "load": Load(),
        "duration_us": 40_000.0,
        "flow_control": "pfc",
        "switch_settings": ECN,
        "buffers": Buffers(xoff=400_000),
        **more,
    }
    pattern = settings.pop("pattern")
    return simulate(
        Scenario(make_plan(load(spec), "updown"), pattern, transport=transport, **settings)
    )


def test_a_controlled_incast_has_a_short_queue_and_pauses_nobody() -> None:
    free, controlled = run(None).summary(), run(DCQCN).summary()
    assert free["transport"] is None
    assert controlled["transport"] == ["dcqcn"]
    assert free["cnps"] is None
    assert free["pauses"] > 0
    # All senders start at the rate of the line: the queue is long at first.
    late = run(DCQCN, warm_up_us=20_000.0).summary()
    assert late["pauses"] == 0
    assert late["lost_frames"] == 0
    assert late["throughput_mbps"] > 0.8 * free["throughput_mbps"]


def test_each_flow_gets_at_most_a_notification_in_50_us() -> None:
    result = run(DCQCN)
    rows = by_flow(result)
    assert sum(row["cnps"] for row in rows) == result.summary()["cnps"]
    for row in rows:
        assert 10 < row["cnps"] <= 40_000 / 50 + 1
    for row in by_flow(run(Transport(control=Dcqcn(cnp_us=2000.0)))):
        assert 5 < row["cnps"] <= 40_000 / 2000 + 1


def test_notifications_take_room_on_the_way_back() -> None:
    result = run(DCQCN, duration_us=1000.0)
    place = result.channels.place["h4"]
    frames = int(result.report.channel_tx_frames[place])
    assert frames >= result.summary()["cnps"] > 0
    assert int(result.report.channel_tx_bytes[place]) == 64 * frames
    # They are no data packets.
    assert result.report.packet_hops <= 2 * sum(
        int(result.report.channel_tx_frames[result.channels.place[host]])
        for host in ("h1", "h2", "h3")
    )


@pytest.mark.parametrize("recovery", [None, GoBackN(), Selective()])
def test_nscc_keeps_an_incast_short_also_if_frames_are_lost(recovery: Recovery | None) -> None:
    """Where nothing pauses and queues are short, what is lost is sent again, and less is lost."""
    nscc = Transport(control=Nscc(), recovery=recovery)
    late = run(nscc, warm_up_us=20_000.0).summary()
    assert (late["pauses"], late["lost_frames"], late["retransmitted_frames"]) == (0, 0, 0)
    assert late["throughput_mbps"] > 0.97 * 40_000 * 1500 / 1538
    flows = Flows(incast=Incast(3, 3_000_000, "h4"))
    more: dict[str, Any] = {"workload": flows, "duration_us": None, "flow_control": "none"}
    more |= {"buffers": Buffers(queue=60_000), "switch_settings": None}
    free = run(Transport(recovery=nscc.recovery), **more).summary()
    controlled = run(nscc, **more).summary()
    for values in (free, controlled):
        assert (values["messages"], values["messages_under_way"]) == (3, 0)
    assert 0 < controlled["lost_frames"] < free["lost_frames"] / 2


def test_a_seed_gives_one_result_which_depends_on_the_transport() -> None:
    hashes = [
        run(transport, duration_us=20_000.0, seed=seed).result_sha256
        for transport, seed in [
            (DCQCN, 1),
            (DCQCN, 1),
            (DCQCN, 2),
            (Transport(control=Dcqcn(g=0.5)), 1),
            (None, 1),
        ]
    ]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 4


def test_without_marks_hosts_send_as_fast_as_their_lines_permit() -> None:
    """The same messages complete at the same times as without a transport, if they take turns."""
    flows = Flows(incast=Incast(3, 40_000, "h4", every_us=30.0, count=20))
    settings: dict[str, Any] = {"workload": flows, "duration_us": None, "switch_settings": None}
    free, controlled = run(None, take_turns=True, **settings), run(DCQCN, **settings)
    assert free.completions is not None
    assert controlled.completions is not None
    assert controlled.completions.end_ps.tolist() == free.completions.end_ps.tolist()
    assert controlled.summary()["cnps"] == 0


def test_flows_of_one_host_take_turns_at_rates_of_their_own() -> None:
    """A flow into a congested line does not hold up another one of its host."""
    pairs = [(0, 3), (1, 3), (2, 3), (0, 4)]
    result = run(
        DCQCN,
        "flat,5,rate=40000,delay=1",
        pattern=pattern_of("pairs", "these pairs", pairs),
        warm_up_us=20_000.0,
    )
    rates = result.flows_mbps.tolist()
    # Three share a line; what host 0 does not send there it sends on its other flow.
    assert 0.7 * 40_000 / 3 < rates[0] < 1.3 * 40_000 / 3
    assert rates[0] + rates[3] > 0.9 * 40_000
    assert result.summary()["pauses"] == 0


def test_collectives_and_acknowledged_messages_end() -> None:
    ring = run(
        DCQCN,
        workload=CollectiveRun("ring-allreduce", 400_000),
        duration_us=None,
    )
    assert ring.program_us is not None
    assert ring.summary()["messages_under_way"] == 0
    done = run(
        DCQCN, load=Load("acknowledged", message_bytes=100_000, messages=20), duration_us=None
    )
    assert done.summary()["messages"] == 60
    assert done.summary()["cnps"] > 0


def test_queue_pairs_are_used_again_when_their_messages_have_gone() -> None:
    flows = Flows(incast=Incast(3, 30_000, "h4", every_us=30.0, count=300))
    result = run(DCQCN, workload=flows, duration_us=None)
    assert result.summary()["messages"] == 900
    assert result.summary()["cnps"] > 0
    assert result.summary()["messages_under_way"] == 0


def test_hosts_send_broadcasts_as_without_a_transport() -> None:
    plan = make_plan(load(FLAT), "updown")
    more: dict[str, Any] = {"senders": (("h1", 0),), "duration_us": 100.0}
    scenario = Scenario(plan, "multicast", Load("constant", 0.1), **more)
    sent = simulate(scenario).summary()["packets"]
    controlled = Scenario(plan, "multicast", Load("constant", 0.1), transport=DCQCN, **more)
    assert simulate(controlled).summary()["packets"] == sent > 0


def test_hubs_have_no_transports() -> None:
    with pytest.raises(SimulationError, match="transports need switches"):
        run(DCQCN, "hub,4", pattern="shift:1", switch_settings=None, flow_control="auto")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["tcp"], r"transport: 'tcp' is not one of .*dcqcn"),
        (["dcqcn,x=1"], r"transport dcqcn: 'x=1' must be KEY=VALUE with one of g, cnp_us"),
        (["dcqcn,g"], r"transport dcqcn: g must be a number, not ''"),
        (["dcqcn,steps=1.5"], r"steps must be a whole number, not '1.5'"),
        (["dcqcn,g=nan"], r"dcqcn: g must be over 0 and at most 1, not nan"),
        (["dcqcn,g=2"], r"g must be over 0 and at most 1, not 2"),
        (["dcqcn,timer_us=0"], r"timer_us must be over 0"),
        (["dcqcn,steps=0"], r"steps must be 1 to 1000, not 0"),
        (["dcqcn,rai_mbps=-1"], r"rai_mbps must be over 0"),
        (["dcqcn", "dcqcn"], r"dcqcn is given already"),
        (["nscc", "dcqcn"], r"transport dcqcn: nscc is given already: choose one of them"),
        (["nscc,gamma=2"], r"nscc: gamma must be over 0 and at most 1, not 2"),
        (["nscc,fair=-1"], r"nscc: fair must be 0 or more and at most 1e\+06, not -1"),
        (["nscc,rtt_us=0"], r"nscc: rtt_us must be over 0"),
    ],
)
def test_transports_that_are_not_possible_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        transport_of(texts)


def test_a_transport_is_read_from_its_text() -> None:
    assert transport_of([]) is None
    assert transport_of(["dcqcn"]) == DCQCN
    read = transport_of(["dcqcn,g=0.01,steps=3,rhai_mbps=500"])
    assert read == Transport(control=Dcqcn(g=0.01, steps=3, rhai_mbps=500.0))
    # NSCC needs answers: it has a recovery in any case.
    nscc = transport_of(["nscc,target_us=5"])
    assert nscc == Transport(control=Nscc(target_us=5.0), recovery=Selective())
    assert nscc.names == ["nscc", "selective"]
    other = transport_of(["nscc", "go-back-n,window=16"])
    assert other == Transport(control=Nscc(), recovery=GoBackN(window=16))


def test_the_command_reports_the_transport(tmp_path: Path) -> None:
    settings, out = tmp_path / "ecn.yaml", tmp_path / "out.json"
    settings.write_text("ecn: [{priorities: [0], kmin_bytes: 5000, kmax_bytes: 200000}]\n")
    arguments = ["simulate", FLAT, "--incast", "3:500000", "--transport", "dcqcn,timer_us=300"]
    arguments += ["--switch", str(settings), "--flow-control", "pfc", "--out", str(out)]
    done = CliRunner().invoke(main, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    values = json.loads(done.output)
    assert values["transport"] == ["dcqcn"]
    assert values["cnps"] == sum(row["cnps"] for row in json.loads(out.read_text())["by_flow"]) > 0
    shown = CliRunner().invoke(main, arguments).output
    assert shown.startswith("incast by dcqcn on ")
    wrong = CliRunner().invoke(main, ["simulate", FLAT, "--transport", "quic"])
    assert wrong.exit_code == 2
