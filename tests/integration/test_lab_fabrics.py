"""The labs that need a running fabric, as their sheets say, with the words at the prompt."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from knotless.emulation.names import Names
from knotless.lab_checks.lab import labs
from tests.support.fabric_fixtures import FREE_PORTS, Knotless
from tests.support.terminal import PROMPT, Lab
from tests.support.waiting import until

Check = Callable[[], list[str]]


@pytest.fixture
def work(tmp_path: Path) -> Callable[[int], Path]:
    """Return a function that completes the skeleton of a lab by its solution."""

    def copied(number: int) -> Path:
        for which in ("skeleton", "solution"):
            shutil.copytree(labs()[number].folder / which, tmp_path, dirs_exist_ok=True)
        return tmp_path

    return copied


@pytest.fixture
def checked(knotless: Knotless, names: Names, tmp_path: Path) -> Callable[[int], list[str]]:
    """Return a function that runs lab-check on the running fabric; returns what is still wrong."""

    def check(number: int) -> list[str]:
        done = knotless("lab-check", str(number), "--work", str(tmp_path), "--name", names.name)
        first, *lines = done.stdout.splitlines()
        right = first == f"{labs()[number].title}: all right"
        assert done.returncode == (0 if right else 1), done
        assert right == (not lines)
        return [line.strip() for line in lines]

    return check


def test_lab_1_a_ring_freezes_and_says_why(
    lab: Callable[..., Lab], checked: Callable[[int], list[str]], work: Callable[[int], Path]
) -> None:
    folder = work(1)
    assert checked(1)[0].startswith("no fabric 'test-")
    routes = ("--engine", "dor", "--vcs", "1", "--select", "low-port", "--allow-deadlock")
    one = lab("ring,4", *routes, directory=folder)
    one.expect(PROMPT)
    assert "0% dropped" in one.say("pingall")
    assert "No deadlock now. By the rules in the switches, it CAN DEADLOCK" in one.say("why")
    assert checked(1) == [
        "the running ring is not frozen: start the four senders, wait, and type 'deadlock'"
    ]
    assert "capturing s1:2-s2:3 to ring.pcap" in one.say("capture s1-s2 ring.pcap")
    one.say("source senders.mn")
    knot = "s1:2/0 -> s2:2/0 -> s3:2/0 -> s4:2/0 -> s1:2/0"
    one.say_until("deadlock", knot)
    why = one.say("why")
    assert "4 channels wait for each other under PAUSE:" in why
    assert "frames that wait for s2:2/0, as h1 to h3 would." in why
    shown = one.say("top 1")
    row = next((line for line in shown.splitlines() if line.startswith("s1:2/0 ")), "")
    assert "100%" in row, shown
    assert "frames of s1:2-s2:3 captured" in one.say("capture s1-s2")
    assert (folder / "ring.pcap").stat().st_size > 1000
    assert checked(1) == []


def test_lab_4_pfc_keeps_a_ring_alive_that_pause_freezes(
    lab: Callable[..., Lab],
    knotless: Knotless,
    names: Names,
    checked: Callable[[int], list[str]],
    work: Callable[[int], Path],
) -> None:
    one = lab("ring,5", "--engine", "dor", directory=work(4))
    one.expect(PROMPT)
    assert any("must have used 2: start all five senders" in line for line in checked(4))
    assert "flow control pfc: cannot deadlock under PFC" in one.say("flowcontrol")
    one.say("source senders.mn")
    one.say_until("top 1", "s1:2/0")
    assert "no deadlock" in one.say("deadlock")
    changed = one.say("flowcontrol pause")
    assert "flow control pause: CAN DEADLOCK under PAUSE: s1:2/0 -> s2:2/0" in changed
    done = knotless("check", "--live", "--name", names.name)
    assert "CAN DEADLOCK under PAUSE" in done.stdout
    one.say_until("deadlock", "s4:2/0 -> s5:2/0 -> s1:2/0")
    assert "5 channels wait for each other under PAUSE:" in one.say("why")
    assert "the running ring is frozen: type 'flowcontrol pfc', and start the senders again" in (
        checked(4)
    )
    assert "flow control pfc: cannot deadlock under PFC" in one.say("flowcontrol pfc")
    until("frames on both virtual channels, some of them paused", lambda: checked(4) == [])


def test_lab_3_rules_by_hand_carry_pings_in_two_vlans(
    lab: Callable[..., Lab], checked: Callable[[int], list[str]], work: Callable[[int], Path]
) -> None:
    one = lab("ring,3,hosts=2", "--controller", "none", directory=work(3))
    one.expect(PROMPT)
    assert any("deliveries fail" in line for line in checked(3))
    for switch in ("s1", "s2", "s3"):
        load = f'replace-flows "{switch}" rules/{switch}.flows'
        assert "ovs-ofctl:" not in one.say(f"{switch} ovs-ofctl -O OpenFlow13 {load}")
    assert "0% dropped" in one.say("pingall")
    assert checked(3) == []


@pytest.fixture
def mesh(knotless: Knotless, names: Names) -> Iterator[Knotless]:
    """Return the command for a mesh that runs in the background."""
    done = knotless("up", "mesh,3,2", "--name", names.name, *FREE_PORTS)
    assert done.returncode == 0, done.stderr
    yield lambda *words: knotless(*words, "--name", names.name)
    assert knotless("down", "--name", names.name).returncode == 0


def test_lab_6_a_link_is_cut_and_the_routes_are_repaired(
    mesh: Knotless, checked: Callable[[int], list[str]], work: Callable[[int], Path]
) -> None:
    work(6)
    assert "s1-s2 is not cut in the running fabric: knotless cut LINK" in checked(6)
    before = mesh("check", "--live", "--pair", "h1", "h2").stdout
    assert before.splitlines() == ["h1 to h2: delivered to h2", "  s1:2/0  VLAN 2", "  h2"]
    assert mesh("cut", "s1-s2").stdout == "s1:2-s2:3: cut, has no carrier\n"
    until("new routes, which lab 6 accepts", lambda: checked(6) == [])
    assert "cut: s1:2-s2:3 (no carrier)" in mesh("status").stdout
    live = mesh("check", "--live").stdout.splitlines()
    assert live[0] == "mesh,3,2: cannot deadlock under PAUSE, all is delivered"
    assert live[-1].startswith("  assumed: each lossless priority of each input has room")
    assert mesh("mend", "s1-s2").returncode == 0

    def back() -> bool:
        # Maybe in another VLAN, so that old and new frames are kept apart.
        path = mesh("check", "--live", "--pair", "h1", "h2").stdout
        return [line.split()[0] for line in path.splitlines()] == ["h1", "s1:2/0", "h2"]

    until("the old path", back)


def test_words_with_mistakes_give_one_line_and_the_prompt(lab: Callable[..., Lab]) -> None:
    one = lab("ring,3")
    one.expect(PROMPT)
    for line, message in (
        ("flowcontrol maybe", "knotless: usage: flowcontrol none|host|switch|pause|pfc"),
        ("pause h9", "knotless: usage: pause HOST [MILLISECONDS]"),
        ("pause h1 soon", "knotless: usage: pause HOST [MILLISECONDS]"),
        ("top never", "knotless: usage: top [SECONDS]"),
        ("capture", "knotless: usage: capture LINK [FILE.pcap]"),
        ("capture s1-s9 x", "knotless: "),
    ):
        assert message in one.say(line), line
    assert "h1 asks its switch to send nothing for 500 ms" in one.say("pause h1")

    def paused() -> bool:
        row = next(line for line in one.say("counters s1:1").splitlines() if line[:5] == "s1:1 ")
        return float(row.split()[-1]) > 0

    until("a pause of the channel to h1", paused)
    assert "Explain a deadlock in sentences" in one.say("help why")


def test_an_engine_in_a_file_routes_a_running_fabric(
    knotless: Knotless, names: Names, work: Callable[[int], Path]
) -> None:
    engine = ("--engine", "./my_engine.py")
    named = ("--name", names.name)
    done = knotless("up", "mesh,2,2", *engine, *named, *FREE_PORTS, cwd=work(9))
    assert done.returncode == 0, done.stderr
    assert "with my_engine.py: cannot deadlock under PAUSE\n" in done.stdout
    try:
        path = knotless("check", "--live", "--pair", "h1", "h4", *named).stdout.splitlines()
        assert [line.split()[0] for line in path] == ["h1", "s1:3/0", "s3:2/0", "h4"]
        assert knotless("cut", "s1-s3", *named).returncode == 0

        def repaired() -> bool:
            lines = knotless("check", "--live", "--pair", "h1", "h4", *named).stdout.splitlines()
            return [line.split()[0] for line in lines] == ["h1", "s1:2/0", "s2:3/0", "h4"]

        until("another path", repaired)
        assert knotless("check", "--live", *named).returncode == 0
    finally:
        assert knotless("down", *named).returncode == 0
