"""A real Open vSwitch has no cached entries of older rules after :func:`purge_megaflows`.

It runs on dummy devices, see :mod:`tests.support.dummy_fabric`.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator

import pytest

from knotless.controller.updates.caches import purge_megaflows
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.numbering import mac_text
from tests.support.dummy_fabric import DummyFabric
from tests.support.waiting import HANG_S, until

pytestmark = pytest.mark.skipif(shutil.which("ovs-vswitchd") is None, reason="needs Open vSwitch")

SOURCES = [mac_text(0x020000000000 + number) for number in range(200)]
AT_ONCE = 50
"""A dummy device keeps 100 frames."""


@pytest.fixture
def switch() -> Iterator[DummyFabric]:
    plan = make_plan(load("flat,3"), "updown")
    fabric = DummyFabric(plan.fabric, compile_rules(plan))
    try:
        fabric.start()
        (fabric.folder / "ovs-vswitchd.1.ctl").symlink_to("switch.ctl")
        yield fabric
    finally:
        fabric.stop()


def _forward(switch: DummyFabric, port: int) -> None:
    switch.ofctl("add-flow", "s1", f"table=200,actions=output:{port}")


def _entries(switch: DummyFabric) -> list[str]:
    """Return the actions of all cached entries."""
    text = switch.appctl("dpctl/dump-flows")
    return [line.rsplit("actions:", 1)[1] for line in text.splitlines() if "actions:" in line]


def _fill(switch: DummyFabric) -> None:
    """Have each source send a frame, so that there is an entry for it."""
    file = switch.folder / "flows"
    file.write_text(
        "".join(f"priority=60000,dl_src={source},actions=goto_table:200\n" for source in SOURCES)
    )
    switch.ofctl("add-flows", "s1", str(file))
    for begin in range(0, len(SOURCES), AT_ONCE):
        frames = [
            f"in_port(1),eth(src={source},dst=02:00:00:00:01:01),eth_type(0x88b5)"
            for source in SOURCES[begin : begin + AT_ONCE]
        ]
        switch.appctl("netdev-dummy/receive", "h1", *frames)
        until("all cached", lambda: len(_entries(switch)) >= begin + AT_ONCE)  # noqa: B023


@pytest.mark.smoke
def test_no_entry_is_older_than_the_rules(switch: DummyFabric) -> None:
    _, second, third = (host.port for host in switch.fabric.hosts)
    _forward(switch, second)
    _fill(switch)
    before = set(_entries(switch))
    assert len(before) == 1
    # The checks can last as long as they like: they are stopped, until it is seen that they matter.
    switch.appctl("revalidator/pause")
    _forward(switch, third)
    late: list[list[str]] = []
    waiting = threading.Thread(target=lambda: late.append(purge_megaflows(switch.folder)))
    waiting.start()
    assert waiting.is_alive()
    switch.appctl("revalidator/resume")
    waiting.join(HANG_S)
    assert late == [[]]
    assert not before & set(_entries(switch))


def test_an_entry_that_open_vswitch_takes_for_correct_goes_too(switch: DummyFabric) -> None:
    """As some do in Open vSwitch 3.1 under load: they stay wrong through all checks."""
    _, second, _ = (host.port for host in switch.fabric.hosts)
    _forward(switch, second)
    _fill(switch)
    text = switch.appctl("dpctl/dump-flows", "-m")
    (entry,) = re.findall(rf"(ufid:\S+, .*{SOURCES[0]}.*), packets:", text)
    switch.appctl("dpctl/mod-flow", re.sub(r"packet_type\([^)]*\),", "", entry), "drop")
    assert "drop" in _entries(switch)
    for _ in range(3):
        switch.appctl("revalidator/wait")
    assert "drop" in _entries(switch), "checks do not correct it"
    assert purge_megaflows(switch.folder) == []
    assert "drop" not in _entries(switch)
