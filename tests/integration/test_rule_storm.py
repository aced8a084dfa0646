"""Rules and groups are deleted, changed and added at random, and switches restart, under traffic.

``KNOTLESS_STORM=200 KNOTLESS_STORM_SEED=1 pytest tests/integration/test_rule_storm.py -s`` does so
200 times, and prints how often and how long each kind took.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest

from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.topologies import load
from knotless.verification.check import Verdict, check
from tests.support.bare_fabric import BareFabric
from tests.support.waiting import until

STORM = int(os.environ.get("KNOTLESS_STORM", "6"))
SEED = int(os.environ.get("KNOTLESS_STORM_SEED", "1"))
FABRIC = "torus,3,3"
CONFIG = (
    f"fabric: {FABRIC}\nengine: updown\nconnect_timeout_s: 10\nprotection: fast-failover\n"
    "reread_interval_s: 2\n"
)
FOREIGN = 0xF0
TRAFFIC = (
    "import socket, sys\n"
    "end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    "end.settimeout(0.01)\n"
    "while True:\n"
    "    for address in sys.argv[1:]:\n"
    "        end.sendto(bytes(64), (address, 9))\n"
    "    try: end.recv(1)\n"
    "    except OSError: pass\n"
)


@pytest.fixture(scope="module")
def fabric() -> Iterator[BareFabric]:
    with BareFabric(load(FABRIC)) as running:
        running.start_controller(CONFIG)
        running.await_ready()
        hosts = running.fabric.hosts
        senders = [
            subprocess.Popen(
                running.command_on(
                    host.name, sys.executable, "-c", TRAFFIC, *(h.ip for h in hosts if h != host)
                )
            )
            for host in hosts[::3]
        ]
        yield running
        for sender in senders:
            sender.kill()
            sender.wait()


class Storm:
    """What is done to the switches; each kind returns the switch, and what undoes foreign rules."""

    def __init__(self, fabric: BareFabric, rng: random.Random) -> None:
        self._fabric, self._draw = fabric, rng
        self._names = [switch.name for switch in fabric.fabric.switches]
        self.kinds: dict[str, Callable[[str], bool]] = {
            "a rule is deleted": self._one_rule,
            "a table is deleted": lambda s: self._delete(s, f"table={self._draw.randrange(4)}"),
            "all rules are deleted": lambda s: self._delete(s),
            "all groups are deleted": self._groups,
            "a rule is changed": self._changed,
            "a rule is added": self._added,
            "a rule that floods is added": self._flooding,
            "a switch restarts without rules": self._restarted,
        }

    def step(self) -> tuple[str, str, bool]:
        """Do something; returns the kind, the switch, and whether rules of others are there now."""
        kind, switch = self._draw.choice([*self.kinds]), self._draw.choice(self._names)
        return kind, switch, self.kinds[kind](switch)

    def _delete(self, switch: str, match: str = "") -> bool:
        self._fabric.ofctl("del-flows", switch, *([match] if match else []))
        return False

    def _match_of_one(self, switch: str) -> str:
        """Return priority and match of a rule, as ovs-ofctl takes them with ``--strict``."""
        text = self._draw.choice(sorted(self._fabric.flows(switch)))
        fields = text.partition(" actions=")[0].split(",", 1)
        return ",".join(field.strip() for field in fields if "cookie=" not in field)

    def _one_rule(self, switch: str) -> bool:
        self._fabric.ofctl("del-flows", switch, "--strict", self._match_of_one(switch))
        return False

    def _groups(self, switch: str) -> bool:
        self._fabric.ofctl("del-groups", switch)
        return False

    def _changed(self, switch: str) -> bool:
        port = self._draw.randint(1, 5)
        self._fabric.ofctl("mod-flows", switch, f"table=1,actions=output:{port}")
        return False

    def _added(self, switch: str) -> bool:
        address = f"02:00:00:00:{self._draw.randrange(256):02x}:{self._draw.randrange(256):02x}"
        port = self._draw.randint(1, 5)
        rule = f"cookie={FOREIGN},table=1,priority=60000,dl_dst={address},actions=output:{port}"
        self._fabric.ofctl("add-flow", switch, rule)
        return True

    def _flooding(self, switch: str) -> bool:
        rule = f"cookie={FOREIGN},priority=60000,dl_type=0x88b7,actions=flood"
        self._fabric.ofctl("add-flow", switch, rule)
        return True

    def _restarted(self, switch: str) -> bool:
        """Lose rules, groups and the connection, as a switch does that starts again."""
        target = self._fabric.vsctl("get-controller", switch).strip()
        self._fabric.vsctl("del-controller", switch)
        self._delete(switch)
        self._groups(switch)
        self._fabric.vsctl("set-controller", switch, target)
        return False


def problems(fabric: BareFabric) -> list[str]:
    report = fabric.get("/status")
    return [*report["problems"], *([] if report["ready"] else ["not ready"])]


def verdict(fabric: BareFabric) -> Verdict:
    rules = {
        switch.name: parse(
            fabric.ofctl("dump-flows", switch.name), fabric.ofctl("dump-groups", switch.name)
        )
        for switch in fabric.fabric.switches
    }
    return check(fabric.fabric, rules)


def delivered(fabric: BareFabric) -> bool:
    """Tell whether pings arrive from each host to the one three places on."""
    hosts = fabric.fabric.hosts
    pings = [
        subprocess.Popen(
            fabric.command_on(a.name, "ping", "-c", "1", "-W", "1", b.ip), stdout=subprocess.DEVNULL
        )
        for a, b in zip(hosts, [*hosts[3:], *hosts[:3]], strict=True)
    ]
    lost = [ping.wait() for ping in pings]  # each is waited for
    return not any(lost)


def settled(fabric: BareFabric) -> bool:
    routes = fabric.get("/status")["routes"]
    quiet = not (routes["changing"] or routes["older_rules"] or problems(fabric))
    return quiet and verdict(fabric).ok


def test_all_is_put_back(fabric: BareFabric) -> None:
    storm = Storm(fabric, random.Random(SEED))  # noqa: S311 - a test
    until("no problem", lambda: not problems(fabric))
    assert verdict(fabric).ok
    took: dict[str, list[float]] = defaultdict(list)
    for number in range(STORM):
        began = time.monotonic()
        kind, switch, is_foreign = storm.step()
        what = f"step {number}, {kind} at {switch} (KNOTLESS_STORM_SEED={SEED})"
        if is_foreign:
            until(
                f"{what}: the rules of others are reported",
                lambda switch=switch: any(  # type: ignore[misc]
                    line.startswith(f"{switch} ") and "not Knotless's" in line
                    for line in problems(fabric)
                ),
            )
            took[f"{kind}: reported"].append(time.monotonic() - began)
            fabric.ofctl("del-flows", switch, f"cookie={FOREIGN}/-1")
            began = time.monotonic()
        until(f"{what}: all is well", lambda: settled(fabric))
        took[kind].append(time.monotonic() - began)
        until(f"{what}: pings arrive", lambda: delivered(fabric))
    for kind, times in sorted(took.items()):
        sys.stdout.write(f"{kind}: {len(times)} times, {max(times):.1f} s at most\n")
