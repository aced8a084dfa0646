"""Settings of switches by which lossless frames can be lost, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from knotless._core.simulator import headroom_bytes
from knotless.base.errors import SwitchSettingsError
from knotless.base.switch_settings import SwitchFile
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.state import ForwardingState
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.check import Verdict
from knotless.verification.switch_verdict import FRAME_OVERHEAD_BYTES, verdict_with_switches

LONGEST = 1500 + FRAME_OVERHEAD_BYTES
NEEDED = headroom_bytes(10_000_000_000, 5_000_000, LONGEST)
"""Of 10 Gb/s and 5 us."""
RESERVED = {"reserved_bytes": LONGEST}


def state(spec: str = "mesh,2,1,rate=10000,delay=5") -> ForwardingState:
    return state_of_plan(make_plan(load(spec)))


def judged(content: dict[str, Any], control: str = "pfc", **options: Any) -> Verdict:
    return verdict_with_switches(state(), SwitchFile.model_validate(content), control, **options)


def ingress(**fields: Any) -> dict[str, Any]:
    return {
        "lossless": [0],
        "pools": {"in": {"side": "ingress", "bytes": 100_000}},
        "ingress": [{"priorities": [0], "pool": "in", **RESERVED, **fields}],
    }


@pytest.mark.parametrize("enough", [True, False])
def test_headroom_of_the_link(enough: bool) -> None:
    """The formula counts what the link holds in both directions, and two frames."""
    assert NEEDED == 2 * 6250 + 2 * (LONGEST + 20) + 1
    verdict = judged(ingress(headroom_bytes=NEEDED - (not enough)))
    assert verdict.ok is enough
    assert verdict.losses == (
        []
        if enough
        else [
            f"s1:1 and 3 more: priority 0: headroom_bytes {NEEDED - 1} of the ingress buffer, but"
            f" its link needs {NEEDED}: frames can be lost; set it to {NEEDED} or more"
        ]
    )


def test_longer_packets_need_more() -> None:
    content = ingress(headroom_bytes=NEEDED)
    assert judged(content).losses == []
    assert len(judged(content, packet_bytes=1501).losses) == 1


def test_pause_frames_on_the_wire_and_slow_senders_need_more_headroom() -> None:
    frames = {"pause_frames": {"response_us": 2.0}}
    more = (LONGEST + 20) + 84 + 2500
    content = {**ingress(headroom_bytes=NEEDED + more - 1), **frames}
    assert f"link needs {NEEDED + more}:" in judged(content).losses[0]
    assert judged({**ingress(headroom_bytes=NEEDED + more), **frames}).losses == []


@pytest.mark.parametrize(
    ("quanta", "control", "losses"), [(48, "pfc", 1), (49, "pfc", 0), (9, "none", 0)]
)
def test_pauses_must_not_end_before_they_are_repeated(
    quanta: int, control: str, losses: int
) -> None:
    lines = judged({"pause_frames": {"quanta": quanta}}, control).losses
    assert len(lines) == losses
    assert all("pause_frames: quanta 48 can end before" in line for line in lines)
    assert all(line.endswith("set it to 49 or more") for line in lines)


def test_priorities_that_are_not_lossless_need_nothing() -> None:
    content = ingress(headroom_bytes=0)
    assert judged({**content, "lossless": []}).losses == []
    assert judged({**content, "lossless": [1]}).losses == []
    assert len(judged(content).losses) == 1


@pytest.mark.parametrize(("ports", "losses"), [(1, 1), (2, 0)])
def test_headroom_that_a_pool_shares(ports: int, losses: int) -> None:
    content = ingress(headroom_bytes=NEEDED)
    content["pools"]["in"]["headroom_bytes"] = ports * NEEDED
    verdict = judged(content)
    assert len(verdict.losses) == losses
    for line in verdict.losses:
        assert line == (
            f"s1 and 1 more: pool in: headroom_bytes {NEEDED} are enough for 1 of its 2 lossless"
            f" ingress buffers (port and priority) at once: frames can be lost; all need"
            f" {2 * NEEDED}"
        )


def test_pause_has_one_buffer_for_all_priorities() -> None:
    content = ingress(headroom_bytes=NEEDED)
    del content["lossless"]
    content["ingress"][0]["priorities"] = [0, 1, 2]
    content["pools"]["in"]["headroom_bytes"] = 2 * NEEDED
    assert judged(content, "pause").losses == []


def test_a_priority_that_is_lossless_at_one_end_only() -> None:
    content = {"lossless": [0, 1], "switches": {"s2": {"lossless": [0, 2]}}}
    lines = judged(content).losses
    assert lines == [
        f"{one}:2 has priority {priority} lossless, which {other}:2 neither pauses nor obeys: its"
        " packets can be lost"
        for one, priority, other in (("s1", 1, "s2"), ("s2", 2, "s1"))
    ]
    assert judged(content, "pause").losses == []
    assert judged(content, "pause").notes == [
        "links that PAUSE stop all priorities: lossless of the file has no effect"
    ]


@pytest.mark.parametrize(
    ("link", "other", "losses"),
    [
        ({"mtu_bytes": 9100}, {"mtu_bytes": 9100}, []),
        ({"mtu_bytes": 9100}, {}, []),
        ({"mtu_bytes": 9100}, {"mtu_bytes": 1500}, ["s1:2 sends packets of up to 9100 bytes"]),
        ({"flow_control": "credits"}, {"flow_control": "pfc"}, ["s1:2 waits for credits, which"]),
        ({"rate_mbps": 100}, {"rate_mbps": 25}, ["s1:2 has 100 Mbit/s, and s2:2 25"]),
    ],
)
def test_the_ends_of_a_link_are_judged_together(
    link: dict[str, Any], other: dict[str, Any], losses: list[str]
) -> None:
    content = {"link": link, "switches": {"s2": {"ports": {"2": {"link": other}}}}}
    lines = judged(content).losses
    assert len(lines) == len(losses)
    assert all(line.startswith(start) for line, start in zip(lines, losses, strict=True))


def test_hosts_are_not_judged_where_their_links_do_not_pause() -> None:
    (line,) = judged(ingress(headroom_bytes=0), "switch").losses
    assert line.startswith("s1:2 and 1 more: priority 0")


def egress(admitted: dict[str, Any], **fields: Any) -> list[str]:
    """Return the losses of egress queues with those fields, if that is admitted."""
    content = ingress(headroom_bytes=NEEDED, **admitted)
    content["pools"]["out"] = {"side": "egress", "bytes": 120_000}
    content["egress"] = [{"priorities": [0], **fields}]
    return judged(content).losses


def test_egress_queues_hold_what_ingress_buffers_admit() -> None:
    """100,000 bytes of the pool, and reserve and headroom of two ports."""
    most = 100_000 + 2 * (LONGEST + NEEDED)
    assert egress({}, limit_bytes=most) == []
    assert egress({}, limit_bytes=most - LONGEST, reserved_bytes=LONGEST) == []
    (line,) = egress({}, limit_bytes=most - 1)
    assert line == (
        f"s1:1 and 3 more: priority 0: an egress queue holds at most {most - 1} bytes (limit_bytes"
        f" {most - 1}), but ingress buffers of the switch admit up to {most} of this lossless"
        " priority: frames can be dropped; let it hold as much"
    )
    (line,) = egress({}, pool="out")
    assert "holds at most 120000 bytes (pool out, the whole pool)" in line
    assert len(egress({}, pool="out", alpha=16)) == 1
    assert egress({"limit_bytes": 20_000}, pool="out", alpha=16) == []
    assert "pool out, alpha 1" in egress({"limit_bytes": 20_000}, pool="out", alpha=1)[0]
    assert egress({}) == []


def test_alpha_bounds_what_one_ingress_buffer_admits() -> None:
    """Two buffers that take half of what is free each hold less than the pool."""
    most = 2 * 33_333 + 2 * (LONGEST + NEEDED)
    assert egress({"alpha": 0.5}, limit_bytes=most) == []
    assert len(egress({"alpha": 0.5}, limit_bytes=most - 1)) == 1


def test_an_egress_pool_holds_all_lossless_priorities_together() -> None:
    content: dict[str, Any] = {
        "lossless": [0, 1],
        "pools": {"out": {"side": "egress", "bytes": 60_000}},
        "ingress": [{"priorities": [0, 1], "limit_bytes": 20_000, "headroom_bytes": NEEDED}],
        "egress": [{"priorities": [0, 1], "pool": "out"}],
    }
    most = 2 * 2 * (20_000 + NEEDED)
    content["pools"]["out"]["bytes"] = most
    assert judged(content).losses == []
    content["pools"]["out"]["bytes"] = most - 1
    assert judged(content).losses == [
        f"{switch}: egress pool out holds {most - 1} bytes of priorities 0, 1, but ingress buffers"
        f" admit up to {most}: frames can be dropped; let it hold as much"
        for switch in ("s1", "s2")
    ]


def test_packets_of_priorities_that_may_be_dropped_are_noted() -> None:
    verdict = judged({"lossless": [3]})
    assert verdict.notes == [
        "packets use priority 0, which some port does not pause: it can drop them"
    ]
    assert judged({}).notes == []


def test_a_cycle_through_pools_comes_with_its_remedy() -> None:
    content = ingress(reserved_bytes=LONGEST - 1)
    (note,) = judged(content).notes
    assert note.startswith("ingress buffers wait for room in pool in of s2 and 1 more: ")
    assert note.endswith(f"give each of these buffers reserved_bytes of {LONGEST} or more")
    assert judged(ingress()).notes == []


def test_only_lossless_priorities_wait() -> None:
    """A ring with a cycle in priority 0 is safe if nothing pauses it."""
    ring = state_of_plan(make_plan(load("ring,5"), "dor", vcs=1))
    for lossless, safe in (([0], False), ([1], True), (None, False)):
        file = SwitchFile.model_validate({} if lossless is None else {"lossless": lossless})
        assert verdict_with_switches(ring, file, "pfc").acyclic is safe
        assert verdict_with_switches(ring, file, "pause").acyclic is False


def test_without_flow_control_there_is_nothing_to_judge() -> None:
    verdict = judged(ingress(headroom_bytes=0), "none")
    assert (verdict.acyclic, verdict.losses, verdict.assumes) == (True, [], [])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"switches": {"s9": {}}}, "switches.s9: there is no such switch in mesh,2,1"),
        ({"ports": {"7": {}}}, "ports.7: switches of mesh,2,1"),
        ({"switches": {"s2": {"ports": {"x": {}}}}}, "switches.s2.ports.x: s2 has ports 1, 2"),
    ],
)
def test_names_that_the_fabric_does_not_have_are_refused(
    content: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SwitchSettingsError) as error:
        judged(content)
    assert str(error.value).startswith(problem)
    assert "\n" not in str(error.value)
