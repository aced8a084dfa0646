"""The simulator agrees with theory: line rate, fair shares, latency, deadlock, loss."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pytest

from knotless._core.simulator import headroom_bytes
from knotless.base.errors import KnotlessError
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.plan import Plan, make_plan
from knotless.simulation import Buffers, LinkChange, Load, Result, Scenario, simulate
from knotless.topologies import load
from knotless.topologies.numbering import mac_value
from knotless.verification.check import check
from tests.support.one_switch import Frame, Pipeline

PACKET_BYTES = 1500
HOST_WIRE_BYTES = PACKET_BYTES + 18 + 20
WIRE_BYTES = HOST_WIRE_BYTES + 4


def run(spec: str, engine: str, pattern: str, load_: Load | None = None, **more: Any) -> Result:
    routing = {key: more.pop(key) for key in ("vcs", "select") if key in more}
    plan = make_plan(load(spec), engine, **routing)
    return simulate(Scenario(plan, pattern, load_ or Load(), **more))


def test_a_flow_alone_gets_the_line_rate() -> None:
    result = run("flat,2,rate=1000,delay=1", "updown", "shift:1", duration_us=100_000)
    # Both links of the path carry untagged frames.
    theory_mbps = 1000 * PACKET_BYTES / HOST_WIRE_BYTES
    assert result.flows_mbps == pytest.approx([theory_mbps] * 2, rel=1e-3)
    assert result.lost_frames == 0
    assert result.report.deadlock is None


@pytest.mark.parametrize("flow_control", ["pause", "pfc"])
def test_cyclic_routes_freeze_as_the_check_predicts(flow_control: str) -> None:
    plan = make_plan(load("ring,4"), "dor", vcs=1, select="low-port")
    result = simulate(Scenario(plan, "shift:2", flow_control=flow_control, duration_us=5e6))
    kind = "pfc" if flow_control == "pfc" else "pause"
    predicted = check(plan.fabric, compile_rules(plan), flow_control=kind).cycle
    assert sorted(result.knot) == sorted(predicted)
    assert result.lost_frames == 0
    # The frames that wait in the deadlock: two flows need each channel of the ring.
    assert all(len(flows) == 2 for flows in result.knot_frames().values())
    later = simulate(Scenario(plan, "shift:2", flow_control=flow_control, duration_us=10e6))
    assert later.report.flow_packets.sum() == result.report.flow_packets.sum()


def test_acyclic_routes_share_fairly() -> None:
    result = run("ring,4", "prefix", "shift:2", duration_us=30e6)
    assert result.flows_mbps == pytest.approx([5 * PACKET_BYTES / WIRE_BYTES] * 4, rel=0.01)
    assert result.report.deadlock is None
    assert result.lost_frames == 0


def test_without_flow_control_frames_are_lost_and_nothing_freezes() -> None:
    result = run(
        "ring,4", "dor", "shift:2", vcs=1, select="low-port", flow_control="none", duration_us=10e6
    )
    assert result.report.deadlock is None
    assert result.summary()["drops"]["queue"] == result.lost_frames > 1000


def test_one_seed_gives_one_result() -> None:
    plan = make_plan(load("torus,4,4,rate=1000,delay=1"), "dor")
    scenario = Scenario(plan, "uniform", Load("poisson", 0.4), duration_us=2000)
    first, again = simulate(scenario), simulate(scenario)
    assert first.result_sha256 == again.result_sha256
    assert first.result_sha256 != simulate(scenario.changed(seed=2)).result_sha256


@pytest.mark.parametrize("hosts", [3, 4])
def test_flows_into_one_host_share_its_line(hosts: int, tmp_path: Any) -> None:
    lines = ["time_us,source,destination,bytes"]
    lines += [f"0,h{h},h1,15000000" for h in range(2, hosts + 1)]
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(lines))
    plan = make_plan(load(f"flat,{hosts},rate=1000,delay=1"), "updown")
    result = simulate(Scenario(plan, "trace", trace=str(path), duration_us=50_000))
    share_mbps = 1000 * PACKET_BYTES / HOST_WIRE_BYTES / (hosts - 1)
    assert result.flows_mbps[1:] == pytest.approx([share_mbps] * (hosts - 1), rel=0.01)


def line_us(frame_bytes: int, rate_mbps: float) -> float:
    return (frame_bytes + 20) * 8 / rate_mbps


@pytest.mark.thin(10)
@pytest.mark.parametrize("switches", range(1, 9))
@pytest.mark.parametrize("header_bytes", [0, 1, 14, 64, 1600])
def test_zero_load_latency_is_exact(switches: int, header_bytes: int, tmp_path: Path) -> None:
    spec = f"mesh,{switches},1,hosts=2,rate=1000,delay=3"
    plan = make_plan(load(spec), "dor")
    last = plan.fabric.hosts[-1].name
    result = trace(plan, f"0,h1,{last},1500", tmp_path, cut_through=header_bytes)
    # The first and the last link carry the frame untagged, the others with 4 bytes more.
    lines = [1518, *[1522] * (switches - 1), 1518]
    times_ps = [(frame_bytes + 20) * 8000 for frame_bytes in lines]
    theory_ps = 3_000_000 * (switches + 1) + times_ps[-1]
    for comes_ps, goes_ps in pairwise(times_ps):
        # A switch delays the frame by its header, and must not underrun if the frame gets shorter.
        held_ps = max(header_bytes * 8000, comes_ps - goes_ps)
        theory_ps += comes_ps if header_bytes == 0 else min(comes_ps, held_ps)
    assert result.report.latency.max_ps == theory_ps


def trace(plan: Plan, lines: str, folder: Path, **more: Any) -> Result:
    path = folder / "trace.csv"
    path.write_text(f"time_us,source,destination,bytes\n{lines}\n")
    return simulate(Scenario(plan, "trace", trace=str(path), **more))


@pytest.mark.parametrize("load_share", [0.3, 0.6, 0.8])
def test_waiting_on_one_link_is_that_of_an_m_d_1_queue(load_share: float) -> None:
    result = run(
        "flat,2,rate=1000,delay=0",
        "updown",
        "shift:1",
        Load("poisson", load_share),
        warm_up_us=10_000,
        duration_us=3_000_000,
    )
    service_us = line_us(1518, 1000)
    waiting_us = load_share * service_us / (2 * (1 - load_share))
    # Two consecutive links of one rate: frames wait at the first only.
    mean_us = result.report.latency.mean_ps / 1e6
    assert mean_us - 2 * service_us == pytest.approx(waiting_us, rel=0.05)


def test_one_byte_less_than_the_headroom_loses_a_frame() -> None:
    """Measure the bytes in flight when a sender is paused at the worst moment, then allow fewer."""
    plan = make_plan(load("flat,3,rate=1000,delay=5"), "updown")
    base = Scenario(plan, "complement", flow_control="pause", duration_us=50_000)
    lines = "\n".join(f"0,h{h},h1,3000000" for h in (2, 3))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.csv"
        path.write_text(f"time_us,source,destination,bytes\n{lines}\n")
        base = base.changed(pattern="trace", trace=str(path))
        xoff = 40_000
        roomy = simulate(base.changed(buffers=Buffers(xoff=xoff, headroom=100_000)))
        peak = int(roomy.report.channel_ingress_peak_bytes.max())
        # 2 x (1000 Mbit/s x 5 us) in flight and two frames: the formula is an upper bound.
        assert peak - xoff <= headroom_bytes(1_000_000_000, 5_000_000, 1518)
        exact = simulate(base.changed(buffers=Buffers(xoff=xoff, headroom=peak - xoff)))
        assert exact.lost_frames == 0
        short = simulate(base.changed(buffers=Buffers(xoff=xoff, headroom=peak - xoff - 1)))
        assert short.summary()["drops"]["headroom"] > 0


def test_a_deadlock_that_a_watchdog_ends_is_reported() -> None:
    plan = make_plan(load("ring,4"), "dor", vcs=1, select="low-port")
    without = simulate(Scenario(plan, "shift:2", duration_us=5e6))
    result = simulate(Scenario(plan, "shift:2", watchdog_us=100_000, duration_us=5e6))
    assert result.summary()["drops"]["watchdog"] > 0
    assert result.report.flow_packets.sum() > 1000
    # The first forms as it does without a watchdog, which ends it after its limit.
    first, standing = result.report.deadlock, without.report.deadlock
    assert first is not None
    assert standing is not None
    assert (first.cycle, first.since_ps) == (standing.cycle, standing.since_ps)
    assert standing.broken_ps is None
    assert first.broken_ps is not None
    # It checks every eighth of its limit.
    assert 90_000e6 < first.broken_ps - first.since_ps < 115_000e6
    assert without.report.deadlocks == 1 < result.report.deadlocks


def test_hosts_have_no_watchdog() -> None:
    usual = run("mesh,2,1,hosts=2", "dor", "shift:2", duration_us=1e6)
    result = run("mesh,2,1,hosts=2", "dor", "shift:2", watchdog_us=5_000, duration_us=1e6)
    # The switch pauses them for longer than that, but they wait.
    assert result.summary()["drops"]["watchdog"] == 0
    assert sum(result.flows_mbps) == pytest.approx(sum(usual.flows_mbps), rel=0.01)


@pytest.mark.parametrize("action", ["drop", "drop-egress", "forward"])
def test_a_watchdog_ends_a_deadlock_in_its_way(
    action: Literal["drop", "drop-egress", "forward"],
) -> None:
    plan = make_plan(load("ring,4"), "dor", vcs=1, select="low-port")
    settings = Scenario(
        plan, "shift:2", watchdog_us=100_000, watchdog_action=action, duration_us=3e6
    )
    result = simulate(settings).summary()
    assert (result["drops"]["watchdog"] > 0) == (action != "forward")
    assert result["deadlock"]
    assert result["knot_broken_us"] is not None
    short = simulate(settings.changed(watchdog_restore_us=0.0)).summary()
    assert short["result_sha256"] != result["result_sha256"]


def test_a_deadlock_that_a_cut_ends_is_reported() -> None:
    plan = make_plan(load("ring,4"), "dor", vcs=1, select="low-port")
    cut = (LinkChange(1e6, "s1:2", up=False),)
    result = simulate(Scenario(plan, "shift:2", link_changes=cut, duration_us=2e6)).report.deadlock
    assert result is not None
    assert result.broken_ps == 1e12


def test_a_cut_link_drops_frames_until_restored() -> None:
    plan = make_plan(load("ring,4,rate=1000,delay=1"), "updown")
    base = Scenario(plan, "shift:1", duration_us=30_000)
    cut = base.changed(link_changes=(LinkChange(10_000, "h1", up=False),))
    restored = cut.changed(link_changes=(*cut.run.link_changes, LinkChange(20_000, "h1", up=True)))
    whole, less, again = (simulate(s).report.flow_packets[0] for s in (base, cut, restored))
    assert less == pytest.approx(whole / 3, rel=0.01)
    assert again == pytest.approx(whole * 2 / 3, rel=0.01)


def test_a_schedule_without_contention_keeps_every_line_full() -> None:
    result = run("lsft,3,rate=1000,delay=1", "lsft", "schedule", Load(barrier=False))
    assert result.report.flow_messages.sum() == 52 * 51
    # 51 frames of each host one after the other, and the time through the fabric.
    assert result.report.last_complete_ps / 1e6 < 51 * line_us(1522, 1000) + 60


def test_acknowledged_messages_take_a_round_trip(tmp_path: Path) -> None:
    del tmp_path
    result = run(
        "flat,2,rate=1000,delay=3",
        "updown",
        "shift:1",
        Load("acknowledged", message_bytes=1500, messages=5),
    )
    there = 2 * (line_us(1518, 1000) + 3)
    back = 2 * (line_us(64, 1000) + 3)
    # Both hosts send at once, so acknowledgements may wait for a frame.
    assert result.report.completion.min_ps / 1e6 == pytest.approx(there + back)
    assert result.report.flow_messages.tolist() == [5, 5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": -1}, "seed"),
        ({"duration_us": float("nan")}, "duration"),
        ({"load": Load("poisson", -0.5)}, "load must be over 0"),
        ({"load": Load("sometimes")}, "arrivals: 'sometimes' is not one of"),
        ({"load": Load(message_bytes=0)}, "messages must have 1"),
        ({"flow_control": "some"}, "flow control 'some' is not one of"),
        ({"buffers": Buffers(xoff=10, xon=20)}, "must be below xoff"),
        ({"duration_us": None}, "never ends"),
        ({"packet_bytes": 0}, "packets must have"),
        ({"warm_up_us": 20.0, "duration_us": 10.0}, "warm-up must be shorter"),
        ({"link_changes": (LinkChange(1, "s9:9", up=False),)}, "has no link at"),
        ({"pattern": "uniform"}, "uniform traffic needs a load"),
        ({"duration": 10.0}, "a simulation has no setting duration"),
    ],
)
def test_invalid_values_are_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    plan = make_plan(load("ring,4"), "updown")
    with pytest.raises(KnotlessError, match=message) as refused:
        simulate(Scenario(plan, "shift:1", duration_us=10.0).changed(**change))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("5,h1,h2,100\n4,h1,h2,100", "line 3: the time is earlier"),
        ("1,h1,h9,100", "line 2: .* has no host 'h9'"),
        ("-1,h1,h2,100", "line 2: '-1' is not a time"),
        ("1,h1,h2,0", "line 2: '0' is not a number of bytes"),
        ("1,h1,h1,5", "line 2: h1 would send to itself"),
        ("1,h1", "line 2: 2 values"),
    ],
)
def test_traces_that_make_no_sense_are_refused(lines: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(KnotlessError, match=message):
        trace(make_plan(load("ring,4"), "updown"), lines, tmp_path)


@pytest.mark.parametrize(
    ("spec", "engine"), [("torus,4,4,hosts=2", "dor"), ("lsft,3", "lsft"), ("irregular-a", "dl")]
)
def test_frames_take_the_paths_of_the_rules(spec: str, engine: str, tmp_path: Path) -> None:
    plan = make_plan(load(spec), engine)
    hosts = [host.name for host in plan.fabric.hosts]
    pairs = [(a, b) for a in hosts[::3] for b in hosts[::5] if a != b]
    gap_us = 100_000
    lines = "\n".join(f"{n * gap_us},{a},{b},100" for n, (a, b) in enumerate(pairs))
    result = trace(plan, lines, tmp_path)
    pipelines = {name: Pipeline(name, rules) for name, rules in compile_rules(plan).items()}
    passed = dict.fromkeys(result.channels.names, 0)
    for a, b in pairs:
        for channel in (a, *walk(plan, pipelines, a, b)):
            passed[channel] += 1
    assert result.report.channel_tx_frames.tolist() == list(passed.values())


def walk(plan: Plan, pipelines: dict[str, Pipeline], a: str, b: str) -> list[str]:
    fabric = plan.fabric
    source, target = (fabric.hosts[fabric.host_index[name]] for name in (a, b))
    frame = Frame(mac_value(target.mac), mac_value(source.mac), 0x0800)
    switch, port, taken = source.switch, source.port, []
    for _ in range(50):
        ((out, frame),) = pipelines[switch].outputs(port, frame)
        taken.append(f"{switch}:{out}")
        if out not in fabric.neighbours[switch]:
            assert (switch, out) == (target.switch, target.port)
            break
        switch, port = fabric.neighbours[switch][out]
    return taken
