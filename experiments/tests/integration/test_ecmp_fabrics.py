"""Running fabrics with ECMP: switches choose by the hash that the plan says, and are repaired."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from experiments.tests.integration.test_run_experiments import run
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.traffic.flows import flows_of, paths_on_channels
from knotless_experiments.framework.experiment import Common
from knotless_experiments.messages.exchange import Messenger
from knotless_experiments.studies.agreement.cases import cases
from tests.integration.test_repair import status, until_routes_avoid
from tests.support.fabric_fixtures import Knotless, Start
from tests.support.waiting import until

ECMP = PlanRequest(engine="updown", multipath="ecmp")


def test_hosts_of_a_hyperx_exchange_messages_while_a_link_of_their_choices_is_cut(
    start: Start, knotless: Knotless
) -> None:
    # Nothing but the messages is to be counted.
    quiet = {"static_arp": True, "controller_settings": {"discovery": "none"}}
    fabric = start("hyperx,S=4x4,hosts=2", ECMP, **quiet)
    plan, hosts = make_plan(fabric.fabric, ECMP), [host.name for host in fabric.fabric.hosts]
    shifts = [hosts[by:] + hosts[:by] for by in range(1, len(hosts))]
    phases = [list(zip(hosts, targets, strict=True)) for targets in shifts]
    # A link that some pairs may take, and others need not.
    assert plan.next_hops is not None
    to, at = np.argwhere(plan.next_hops.sizes > 1)[0].tolist()
    chosen = plan.next_hops.choices(at, to)[0]
    cut = f"{plan.channels.names[at]}-{plan.channels.names[plan.channels.head[chosen]]}"

    def received() -> int:
        channels = fabric.daemon.counters()["channels"]
        return sum(one["rx_frames"] for one in channels if one["to"] in hosts)

    with Messenger(fabric) as messenger, ThreadPoolExecutor(1) as pool:

        def exchange(rounds: int, limit_s: float) -> list[float]:
            once = phases * rounds
            return messenger.phases(once, datagrams=1, datagram_bytes=1000, limit_s=limit_s)

        # Each pair sends one message, on the channels that the plan says.
        assert len(exchange(1, 240.0)) == len(phases)
        counters = fabric.daemon.counters()
        switches = set(fabric.fabric.switch_index)
        sent = {
            one["channel"]: one["tx_frames"]
            for one in counters["channels"]
            if {one["from"].partition(":")[0], one["to"].partition(":")[0]} <= switches
        }
        flows = flows_of(plan, [(a, b) for a in hosts for b in hosts if a != b])
        expected = paths_on_channels(flows)
        assert len(sent) == len(plan.channels)
        assert sent == {name: expected.get(name, 0) for name in sent}
        assert counters["lost_frames"] == 0

        before = received()
        # A message that is lost with the link is awaited until the limit.
        under = pool.submit(exchange, 3, 20.0)
        until("frames arrive", lambda: received() > before)
        assert knotless("cut", cut, "--name", fabric.name).returncode == 0
        until("the failure", lambda: bool(status(fabric, knotless)["routes"]["failed"]))
        until_routes_avoid(fabric, knotless, status(fabric, knotless)["routes"]["failed"])
        under.result()
        drops = [one["drops"] for one in fabric.daemon.counters()["channels"]]
        assert all(not count for one in drops for cause, count in one.items() if cause != "down")
        assert len(exchange(1, 240.0)) == len(phases)
        assert fabric.daemon.status()["deadlock"] is None

    checked = knotless("check", "--live", "--name", fabric.name, "--json")
    verdict = json.loads(checked.stdout)
    assert (checked.returncode, verdict["undelivered"], verdict["safe"]) == (0, 0, True)
    assert "with updown, ECMP" in knotless("status", "--name", fabric.name).stdout


def test_a_plan_that_no_rule_can_follow_is_refused(knotless: Knotless) -> None:
    for options in (["--multipath", "spray", "--engine", "updown"], ["--engine", "adaptive"]):
        done = knotless("up", "hyperx,S=3x3,hosts=1", "--name", "never", *options)
        assert done.returncode == 2
        assert "rule" in done.stderr or "choose on arrival" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_both_clocks_send_the_same_frames_on_every_channel(tmp_path: Path) -> None:
    rows = run("agreement", "--case", "ecmp", "--duration", "1.5", out=tmp_path)["rows"]
    assert [row["fabric"] for row in rows] == [case.routed.name for case in cases(Common(), "ecmp")]
    for row in rows:
        assert row["valid"], row["problems"]
        assert row["agrees"]
        assert (row["emulated_lost"], row["simulated_lost"]) == (0, 0)
        assert row["emulated_account_peak_bytes"] == row["simulated_account_peak_bytes"]
        assert row["peaks_apart"] == []
