"""Switch settings of a running fabric: marked packets reach their host, pools are shared."""

from __future__ import annotations

from pathlib import Path

from knotless.base.flow_control import FlowControl
from knotless.base.switch_settings import read
from knotless.emulation.network import EmulatedFabric
from knotless.routing.request import PlanRequest
from tests.support.fabric_fixtures import Knotless, Start
from tests.support.waiting import HANG_S, until

SETTINGS = """
lossless: [0]
pools:
  shared: {side: ingress, bytes: 60000}
ingress:
  - {priorities: [0], pool: shared, alpha: 0.5, reserved_bytes: 1522}
ecn:
  - {priorities: [0], kmin_bytes: 3000, kmax_bytes: 9000, pmax: 0.5}
"""


def congested(fabric: EmulatedFabric) -> int:
    """Return the packets with a mark that h2 has received."""
    out, _, _ = fabric.host("h2").pexec("nstat", "-asz", "IpExtInCEPkts")
    return int(out.split("IpExtInCEPkts")[1].split()[0])


def test_packets_are_marked_and_nothing_is_lost(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "switch.yaml"
    path.write_text(SETTINGS)
    fabric = start(
        "ring,4",
        PlanRequest(flow_control=FlowControl.PFC),
        switch_settings=read(path).for_model(),
    )
    for host in ("h1", "h2", "h3"):
        fabric.host(host).pexec("sysctl", "-w", "net.ipv4.tcp_ecn=1")
    servers = [fabric.host("h2").popen(["iperf3", "-s", "-p", port]) for port in ("5201", "5202")]
    try:
        query = ("ss", "-Htln", "sport = :5201 or sport = :5202")
        until("the servers", lambda: fabric.host("h2").pexec(*query)[0].count("LISTEN") == 2)
        clients = [
            fabric.host(host).popen(["iperf3", "-c", "10.0.2.1", "-t", "3", "-p", port])
            for host, port in (("h1", "5201"), ("h3", "5202"))
        ]
        for client in clients:
            client.communicate(timeout=HANG_S)
            assert client.returncode == 0
    finally:
        for server in servers:
            server.terminate()
            server.communicate(timeout=HANG_S)
    counters = fabric.daemon.counters()
    to_h2 = next(one for one in counters["channels"] if one["to"] == "h2")
    assert congested(fabric) > 0
    assert to_h2["priorities"][0]["marked_frames"] >= congested(fabric)
    assert counters["lost_frames"] == 0
    (pool,) = [one for one in counters["pools"] if one["switch"] == "s2"]
    assert 0 < pool["peak_bytes"] <= 60_000
    assert fabric.daemon.status()["valid"]


def test_a_port_that_does_not_exist_is_one_line(tmp_path: Path, knotless: Knotless) -> None:
    path = tmp_path / "switch.yaml"
    path.write_text("ports: {'77': {lossless: []}}\n")
    done = knotless("up", "ring,3", "--switch", str(path), "--name", "switch-settings")
    assert done.returncode == 2
    assert 'switch_settings: ports: no switch has a port "77"' in done.stderr
    assert done.stderr.strip().count("\n") == 0
