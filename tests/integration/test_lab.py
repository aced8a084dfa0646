"""``knotless lab`` on a terminal."""

from __future__ import annotations

import signal
from collections.abc import Callable

from knotless.emulation.names import Names
from tests.support.fabric_fixtures import Knotless, Remains
from tests.support.terminal import Lab


def test_lab_gives_the_prompt_and_leaves_nothing(
    lab: Callable[..., Lab], names: Names, remains: Remains
) -> None:
    one = lab("ring,4")
    one.expect("mininet> ")
    one.type("pingall\n")
    assert "0% dropped" in one.expect("mininet> ")
    one.type("deadlock\n")
    assert "no deadlock" in one.expect("mininet> ")
    one.type("s1 ip -br link show s1-eth2\n")
    assert "UP" in one.expect("mininet> ")
    one.type("counters s1\n")
    assert "lost frames: 0" in one.expect("mininet> ")
    one.type("link h2 s2 down\n")
    one.expect("mininet> ")
    one.type("h1 ping -c 1 -W 1 10.0.2.1\n")
    assert one.expect(" packet loss").endswith("100%")
    one.expect("mininet> ")
    one.type("exit\n")
    assert one.wait() == 0
    assert remains(names) == []


def test_ctrl_c_while_it_starts_leaves_nothing(
    lab: Callable[..., Lab], names: Names, remains: Remains
) -> None:
    one = lab("ring,4")
    one.expect("links")
    one.process.send_signal(signal.SIGINT)
    assert one.wait() == 130
    assert remains(names) == []


def test_a_closed_terminal_ends_the_lab(
    lab: Callable[..., Lab], names: Names, remains: Remains
) -> None:
    one = lab("ring,4")
    one.expect("mininet> ")
    one.process.send_signal(signal.SIGHUP)
    assert one.wait() != 0
    assert remains(names) == []


def test_down_ends_a_lab_that_somebody_else_holds(
    lab: Callable[..., Lab], knotless: Knotless, names: Names, remains: Remains
) -> None:
    one = lab("ring,4")
    one.expect("mininet> ")
    assert knotless("down", "--name", names.name).returncode == 0
    assert one.wait() != 0
    assert remains(names) == []
