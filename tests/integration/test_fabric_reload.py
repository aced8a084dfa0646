"""Hosts, links and switches that come and go away by reloads, on Open vSwitch under traffic."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import IO, Any

import pytest

from knotless.topologies import Fabric, Host, Link, Switch, load
from knotless.topologies.formats.files import to_json
from tests.support.bare_fabric import BareFabric
from tests.support.pings import every_echo_arrives
from tests.support.waiting import until

PINGS = (("h1", "h3"), ("h2", "h4"), ("h4", "h1"), ("h2", "h1"))
CONFIG = "fabric: fabric.json\nengine: updown\nroot: s1\nconnect_timeout_s: 1"
MORTAL = "tests/support/mortal_controller.py"
"""A controller that ends when a test wants it."""
RING = load("ring,4")
HOST = Host("h5", "02:00:00:00:02:09", "10.0.2.9", "s2", 9)
CHORD = Link("s2", 8, "s4", 8)
"""No switch gets nearer to the root by it, so that nothing is stopped (tier 3) under PAUSE."""
SWITCH = Switch("s5", 5)
TO_SWITCH = (Link("s4", 7, "s5", 1), Link("s5", 2, "s2", 7))


@contextmanager
def pinging(fabric: BareFabric) -> Iterator[None]:
    """Ping all the time; no echo may be lost."""
    addresses = {host.name: host.ip for host in fabric.fabric.hosts}

    def start(a: str, b: str, output: IO[str]) -> subprocess.Popen[str]:
        command = fabric.command_on(a, "ping", "-i", "0.02", "-W", "10", addresses[b])
        return subprocess.Popen(command, text=True, stdout=output)

    with every_echo_arrives([partial(start, a, b) for a, b in PINGS]):
        yield
    assert {entry["tier"] for entry in fabric.get("/changes")["changes"]} <= {0, 1, 2}


def declare(fabric: BareFabric, declared: Fabric) -> None:
    (fabric.directory / "fabric.json").write_text(json.dumps(to_json(declared)))


def reload(fabric: BareFabric, declared: Fabric) -> None:
    """Reload with another fabric; the signal reaches the controller itself."""
    declare(fabric, declared)
    before = fabric.controller_log().count("reloaded")
    assert fabric.controller is not None
    fabric.controller.send_signal(signal.SIGHUP)
    until("the reload", lambda: fabric.controller_log().count("reloaded") > before)


def settle(fabric: BareFabric, *failed: str) -> Any:
    """Wait until routes avoid only what has failed, and nothing is left to be removed."""

    def settled() -> bool:
        routes = fabric.get("/status")["routes"]
        left = routes["changing"] or routes["leaving"] or routes["older_rules"]
        return not left and set(routes["failed"]) == set(failed)

    try:
        until(f"routes without {failed or 'nothing'}", settled)
    except AssertionError as error:
        status = fabric.get("/status")
        raise AssertionError(f"{status['routes']} {status['problems']}") from error
    return fabric.get("/status")


def restarted(fabric: BareFabric, config: str, changes_left: int) -> bool:
    """Reload with a controller that ends during the change, and start it again.

    It is killed when it has sent this many changes of switches, unless the change is then over.
    Returns whether the change was interrupted.
    """
    # While a change goes on, a reload is refused.
    settle(fabric)
    armed = fabric.directory / "knotless.left"
    armed.write_text(str(changes_left))
    before = len(fabric.get("/changes")["changes"])
    assert fabric.controller is not None
    fabric.controller.send_signal(signal.SIGHUP)

    def is_over() -> bool:
        assert fabric.controller is not None
        if fabric.controller.poll() is not None:
            return True
        changes = fabric.get("/changes")
        return changes is not None and len(changes["changes"]) > before

    try:
        until("the controller ends, or the change", is_over)
    except AssertionError as never:
        raise AssertionError(f"{never}\n{fabric.controller_log()}") from None
    armed.unlink()
    file = fabric.directory / "state-change.json"
    fabric.kill_controller()
    interrupted = file.exists()
    fabric.start_controller(config, MORTAL)
    fabric.await_ready()
    settle(fabric)
    assert not file.exists()
    assert ("a change was interrupted" in fabric.controller_log()) == interrupted
    return interrupted


def reaches(fabric: BareFabric, host: str, address: str) -> bool:
    command = fabric.command_on(host, "ping", "-c", "1", "-W", "1", address)
    return subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.smoke
def test_parts_come_and_go_away_and_no_frame_is_lost() -> None:
    with BareFabric(RING) as fabric:
        declare(fabric, RING)
        fabric.start_controller(CONFIG)
        fabric.await_ready()
        with pinging(fabric):
            fabric.add_host(HOST)
            more = replace(RING, hosts=(*RING.hosts, HOST), grid=None)
            reload(fabric, more)
            settle(fabric)
            until("the new host is reached", lambda: reaches(fabric, "h3", HOST.ip))

            # A link, and a switch that does not hinder it although it is not there yet.
            fabric.add_link(CHORD)
            more = replace(
                more, switches=(*more.switches, SWITCH), links=(*more.links, CHORD, *TO_SWITCH)
            )
            reload(fabric, more)
            status = settle(fabric, "s5", *(link.name for link in TO_SWITCH))
            assert "s5 (dpid 5) is not connected" in status["problems"]
            fabric.add_bridge(SWITCH.name, SWITCH.dpid)
            for link in TO_SWITCH:
                fabric.add_link(link)
            settle(fabric)
            assert fabric.await_ready()["problems"] == []

            # A link of the ring goes away, and the switch with its links.
            less = replace(
                more,
                switches=RING.switches,
                hosts=RING.hosts,
                links=(RING.links[0], *RING.links[2:], CHORD),
            )
            reload(fabric, less)
            status = settle(fabric)
            assert "s5" not in status["switches"]
            until("s5 has no rules", lambda: not fabric.flows("s5"))
            fabric.vsctl("del-br", "s5")
            until("h5 is not reached", lambda: not reaches(fabric, "h3", HOST.ip))

            # A host that moves would be at two places.
            moved = replace(less.hosts[0], switch="s3", port=6)
            reload(fabric, replace(less, hosts=(moved, *less.hosts[1:])))
            status = settle(fabric)
            (line,) = (text for text in status["problems"] if "not reloaded" in text)
            assert "belongs to host h1 at s1:1 now, and to host h1 at s3:6 in the" in line
            assert fabric.get("/fabric")["links"] == to_json(less)["links"]


@pytest.mark.parametrize("changes", [2, pytest.param(6, marks=pytest.mark.long)])
def test_a_killed_controller_finishes_the_change_and_no_frame_is_lost(changes: int) -> None:
    # All switches connect, however long they take on a busy machine.
    config = CONFIG.replace("connect_timeout_s: 1", "connect_timeout_s: 60\nstate_file: state.json")
    other = replace(RING, links=(RING.links[0], *RING.links[2:], CHORD), grid=None)
    rng = random.Random(1)  # noqa: S311 - repeatable, not secret
    interrupted = 0
    with BareFabric(RING) as fabric:
        fabric.add_link(CHORD)
        declare(fabric, RING)
        fabric.start_controller(config, MORTAL)
        fabric.await_ready()
        with pinging(fabric):
            for number in range(changes):
                declared = (other, RING)[number % 2]
                declare(fabric, declared)
                # Before any switch has changed; then in the middle of a step, or later.
                interrupted += restarted(
                    fabric, config, 2 * number if number < 2 else rng.randrange(8)
                )
                assert fabric.get("/fabric")["links"] == to_json(declared)["links"]
                assert fabric.get("/status")["problems"] == []
    assert interrupted >= 2
