"""A fabric that nobody has declared: learned, proven and used, on Open vSwitch."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from knotless.topologies import Host, Link, Switch, load
from knotless.topologies.formats.files import read, to_text
from knotless.topologies.union import removed
from tests.integration.test_fabric_reload import pinging, settle
from tests.support.bare_fabric import BareFabric
from tests.support.waiting import until

RING = load("ring,4")
SILENT = Host("printer", "02:00:00:00:03:09", "10.0.3.9", "s3", 9)
CONFIG = """
fabric: learned.json
engine: updown
learn_quiet_s: 1
connect_timeout_s: 1
discovery: """
DECLARED = """
hosts:
  - {name: printer, mac: "02:00:00:00:03:09", ip: 10.0.3.9, switch: s3, port: 9}"""
CHORD = Link("s2", 8, "s4", 8)
SWITCH = Switch("s5", 5)
TO_SWITCH = (Link("s4", 7, "s5", 1), Link("s2", 7, "s5", 2))
NEW = Host("new", "02:00:00:00:05:09", "10.0.5.9", "s5", 9)
KNOTLESS = Path(sys.executable).with_name("knotless")


def written(fabric: BareFabric, file: Path) -> bool:
    """Have each host but the silent one send a frame; return whether the fabric is known then."""
    for host in RING.hosts:
        other = next(peer for peer in RING.hosts if peer is not host)
        command = fabric.command_on(host.name, "ping", "-c", "1", "-W", "1", other.ip)
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return file.exists()


def reaches_all(fabric: BareFabric) -> bool:
    pairs = [(a, b) for a in (*RING.hosts, SILENT) for b in (*RING.hosts, SILENT) if a is not b]
    pings = [
        subprocess.Popen(
            fabric.command_on(a.name, "ping", "-c", "1", "-W", "2", b.ip),
            stdout=subprocess.DEVNULL,
        )
        for a, b in pairs
    ]
    return [ping.wait() for ping in pings] == [0] * len(pings)


def test_a_fabric_is_learned_and_used() -> None:
    with BareFabric(RING) as fabric:
        fabric.add_host(SILENT)
        file = fabric.directory / "learned.json"
        fabric.start_controller(f"{CONFIG}learn{DECLARED}")
        until(
            "all switches and links are found",
            lambda: (fabric.get("/status") or {}).get("learning", {}).get("links") == 4,
        )
        status = fabric.get("/status")
        assert status["ready"] is False
        assert "1 host found" in status["problems"][0]
        assert not file.exists()
        until("the file is written", lambda: written(fabric, file))
        assert fabric.await_ready()["problems"] == []
        until("all hosts are reached", lambda: reaches_all(fabric))

        learned = read(file)
        assert removed(RING, learned) == []
        assert len(learned.links) == len(RING.links)
        assert {host.mac for host in learned.hosts} == {host.mac for host in (*RING.hosts, SILENT)}
        assert {host.ip for host in learned.hosts} == {host.ip for host in (*RING.hosts, SILENT)}
        done = subprocess.run(
            [KNOTLESS, "plan", file, "--engine", "updown"],
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

        # The file is what a controller that verifies needs, and one that starts again.
        for discovery in (f"learn{DECLARED}", "verify"):
            fabric.kill_controller()
            fabric.start_controller(f"{CONFIG}{discovery}")
            assert fabric.await_ready()["problems"] == []
            assert fabric.controller_log().count("0 added, 0 modified, 0 deleted") == 4
        assert reaches_all(fabric)


@pytest.mark.long
def test_what_is_found_later_becomes_part_of_the_fabric_and_no_frame_is_lost() -> None:
    with BareFabric(RING) as fabric:
        file = fabric.directory / "learned.json"
        file.write_text(to_text(RING))
        fabric.start_controller(f"{CONFIG}learn\nroot: s1")
        fabric.await_ready()
        with pinging(fabric):
            fabric.add_link(CHORD)
            until("the link is learned", lambda: CHORD in read(file).links)
            until("the link is used", lambda: settle(fabric)["problems"] == [])

            fabric.add_bridge(SWITCH.name, SWITCH.dpid)
            for link in TO_SWITCH:
                fabric.add_link(link)
            fabric.add_host(NEW)

            def greeted() -> bool:
                ping = fabric.command_on(NEW.name, "ping", "-c", "1", "-W", "1", RING.hosts[0].ip)
                return subprocess.run(ping, check=False, stdout=subprocess.DEVNULL).returncode == 0

            until("the new host reaches another", greeted)
            until("nothing is left to be done", lambda: settle(fabric)["problems"] == [])
            learned = read(file)
            assert {host.mac for host in learned.hosts} >= {NEW.mac}
            assert set(learned.switches) == {*RING.switches, SWITCH}
            assert set(learned.links) >= set(TO_SWITCH)

            # Nobody else is admitted with the address of a host.
            thief = replace(NEW, name="thief", mac=RING.hosts[0].mac, switch="s3", port=9)
            fabric.add_host(thief)

            def reported() -> bool:
                ping = fabric.command_on(thief.name, "ping", "-c", "1", "-W", "1", "10.0.3.1")
                subprocess.run(ping, check=False, stdout=subprocess.DEVNULL)
                return any(
                    "of host h1 at s1:1" in line for line in fabric.get("/status")["problems"]
                )

            until("the thief is reported", reported)
        assert {host.port for host in read(file).hosts if host.switch == "s3"} == {1}
