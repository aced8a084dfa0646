"""Status and events on hosts that pause their links."""

import copy
from pathlib import Path
from typing import Any

from knotless.base.pause_storms import name_flows, problems, too_long
from knotless.controller.emulator import EmulatorWatch

HOST: dict[str, Any] = {
    "host": "h1",
    "channel": "s1:1/0",
    "share": 0.55,
    "paused": True,
    "ignored_us": 0,
    "limited": 0,
    "limited_now": False,
    "storm": False,
    "standing": [],
    "flows": [],
}
FLOW = {"from": "02:00:00:00:02:01", "to": "02:00:00:00:01:01", "bytes": 3028}


def status(**changes: object) -> dict[str, Any]:
    return {"pausing_hosts": [copy.deepcopy(HOST) | changes], "storms": []}


def test_a_slow_receiver_behind_which_nothing_stands_is_no_problem() -> None:
    assert problems(status()) == []
    assert problems({}) == []


def test_a_host_behind_which_channels_stand_is_named_with_flows() -> None:
    report = status(standing=["s2:3/0", "h5/0"], flows=[dict(FLOW)])
    name_flows(report["pausing_hosts"], {"02:00:00:00:02:01": "h2"})
    assert problems(report) == [
        "host h1 asked s1:1/0 to pause for 55% of the last second: s2:3/0, h5/0 stand still behind"
        " it; flows that wait: h2 to 02:00:00:00:01:01"
    ]


def test_a_host_that_is_ignored_or_always_pauses_is_a_problem() -> None:
    (line,) = problems(status(limited_now=True, limited=3, ignored_us=2_500_000))
    assert "exceeds its limit (2.5 s ignored)" in line
    assert len(problems(status(share=0.75))) == 1
    assert len(problems(status(storm=True))) == 1


def test_many_names_are_cut_short() -> None:
    (line,) = problems(status(standing=[f"s{i}:1/0" for i in range(9)]))
    assert "s3:1/0 and 5 more stand still" in line


def test_a_storm_is_reported_while_it_lasts() -> None:
    storm = {"channel": "s1:1", "detected": 2, "restored": 1, "dropped_frames": 7, "storming": []}
    assert problems({"storms": [storm]}) == []
    storm["storming"] = [{"channel": "s1:1/0", "since_us": 5}]
    expected = "watchdog: storm on s1:1: 2 detected, 7 frames dropped"
    assert problems({"storms": [storm]}) == [expected]


def test_events_tell_when_a_storm_begins_and_ends() -> None:
    told: list[tuple[str, dict[str, Any]]] = []
    seen_statuses: list[Any] = []
    tell = lambda kind, **fields: told.append((kind, fields))  # noqa: E731
    watch = EmulatorWatch(Path("none"), tell, seen_statuses.append)
    storm = status(standing=["s2:3/0"])
    assert [host["host"] for host in too_long(storm)] == ["h1"]
    for seen in (status(), storm, storm, status(), {}):
        watch.see(seen)
    assert [kind for kind, _ in told] == ["pause-storm", "pause-storm-over"]
    assert told[0][1] == {
        "host": "h1",
        "channel": "s1:1/0",
        "share": 0.55,
        "limited": 0,
        "standing": ["s2:3/0"],
        "flows": [],
    }
    assert told[1][1] == {"host": "h1", "channel": "s1:1/0"}
    watch.see({"stretch_now": 2.5, "pausing_hosts": []})
    assert len(seen_statuses) == 6
    assert seen_statuses[-1]["stretch_now"] == 2.5
