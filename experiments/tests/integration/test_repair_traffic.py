"""All hosts exchange messages, or ping, while a link fails or the engine changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless_experiments.messages.exchange import Messenger
from tests.integration.test_repair import routes, status, until_routes_avoid
from tests.support.fabric_fixtures import Knotless, Start
from tests.support.waiting import HANG_S, until

LINK = "s1:2-s2:3"


@pytest.fixture
def fabric(start: Start, request: pytest.FixtureRequest) -> EmulatedFabric:
    return start(getattr(request, "param", "torus,3,3"))


def test_another_engine_takes_over_without_loss(
    fabric: EmulatedFabric, knotless: Knotless, names: Names
) -> None:
    before = routes(fabric, knotless)
    address = fabric.host("h9").IP()
    traffic = fabric.host("h1").popen(
        ["ping", "-i", "0.005", "-c", "400", "-W", "5", address], text=True, stdout=subprocess.PIPE
    )
    config = names.controller_file
    text = config.read_text()
    config.write_text(text.replace("engine: auto", "engine: updown"))
    assert config.read_text() != text
    os.kill(status(fabric, knotless)["pid"], signal.SIGHUP)
    until("the change", lambda: routes(fabric, knotless)["tier"] != before["tier"])
    until_routes_avoid(fabric, knotless, [])
    output, _ = traffic.communicate(timeout=HANG_S)
    assert "400 received, 0% packet loss" in output


def test_all_pairs_of_a_dragonfly_exchange_messages_before_under_and_after_a_cut(
    start: Start, knotless: Knotless
) -> None:
    fabric = start("dragonfly,a=4,h=2,p=2")
    hosts = [host.name for host in fabric.fabric.hosts]
    shifts = [hosts[by:] + hosts[:by] for by in range(1, len(hosts))]
    phases = [list(zip(hosts, targets, strict=True)) for targets in shifts]

    def received() -> int:
        channels = fabric.daemon.counters()["channels"]
        return sum(one["rx_frames"] for one in channels if one["to"] in hosts)

    with Messenger(fabric) as messenger, ThreadPoolExecutor(1) as pool:

        def exchange(rounds: int, limit_s: float) -> list[float]:
            once = phases * rounds
            return messenger.phases(once, datagrams=1, datagram_bytes=1000, limit_s=limit_s)

        assert len(exchange(1, 240.0)) == len(phases)
        assert fabric.daemon.counters()["lost_frames"] == 0
        before = received()
        assert before >= len(hosts) * len(phases)

        # A message that is lost with the link is awaited until the limit.
        under = pool.submit(exchange, 3, 20.0)
        until("frames arrive", lambda: received() > before)
        assert knotless("cut", "s1-s2", "--name", fabric.name).returncode == 0
        until_routes_avoid(fabric, knotless, ["s1:3-s2:3"])
        under.result()
        drops = [one["drops"] for one in fabric.daemon.counters()["channels"]]
        assert all(not count for one in drops for cause, count in one.items() if cause != "down")
        assert len(exchange(1, 240.0)) == len(phases)
        assert fabric.daemon.status()["deadlock"] is None
    # The rules that switches hold now; probing 5,112 paths would take minutes.
    checked = knotless("check", "--live", "--name", fabric.name, "--json")
    verdict = json.loads(checked.stdout)
    assert (checked.returncode, verdict["undelivered"], verdict["safe"]) == (0, 0, True)
