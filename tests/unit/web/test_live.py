"""A live page of a fabric whose emulator and controller are fakes: they come, go and come back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from knotless.base.errors import EmulationError
from knotless.emulation import forwarding_loops, processes, state
from knotless.emulation import names as names_module
from knotless.emulation.cuts import Cables
from knotless.emulation.daemon import Daemon
from knotless.emulation.frames import Frames
from knotless.emulation.names import Names
from knotless.emulation.record import record
from knotless.emulation.state import State
from knotless.results import recording
from knotless.topologies import load
from knotless.topologies.formats import files
from knotless.web import controller as controller_module
from knotless.web import live
from knotless.web.actions import actions_of, checked
from knotless.web.live import LiveController, LiveFabric
from knotless.web.picture import Picture
from knotless.web.replay import replay
from tests.support.fake_fabric import CYCLE, FakeFabric
from tests.support.waiting import Limit


@pytest.fixture
def fake() -> FakeFabric:
    return FakeFabric(load("ring,4"))


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Names:
    monkeypatch.setattr(names_module, "RUN_DIRECTORY", tmp_path)
    monkeypatch.setattr(Cables, "cuts", lambda _: [])
    for module, name, value in (
        (live, "INTERVAL_S", 0.02),
        (live, "RETRY_S", 0.02),
        (controller_module, "POLL_S", 0.05),
    ):
        monkeypatch.setattr(module, name, value)
    test_names = Names("t")
    test_names.directory.mkdir()
    test_names.token_file.write_text("a-token-of-this-test\n")
    return test_names


def up(names: Names, fake: FakeFabric, port: int = 1, started_at: float = 1.0) -> None:
    """Make a fabric seem to run, owned by this process."""
    names.fabric_file.write_text(json.dumps(files.to_json(fake.fabric)))
    settings = {"links": "emulated", "controller": "ryu", "rest_port": port}
    owner = processes.ourselves()
    stored = State(names.name, fake.fabric.name, owner, "ready", started_at, settings=settings)
    state.write(names, stored)


async def until(condition: Callable[[], Any]) -> Any:
    """Wait until a condition holds, and return its value."""
    limit = Limit()
    while not (value := condition()):
        limit.check("a condition")
        await asyncio.sleep(0.01)
    return value


def running(source: LiveFabric | LiveController, steps: Callable[[], Awaitable[None]]) -> None:
    """Run a source while the steps of a test are taken."""

    async def main() -> None:
        task = asyncio.create_task(source.run())
        try:
            await steps()
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(main())


def test_a_page_shows_a_deadlock_and_survives_the_loss_of_everything(
    names: Names, fake: FakeFabric
) -> None:
    source = LiveFabric(names)
    feed = source.feed

    def part(name: str) -> dict[str, Any]:
        return feed.state.get(name) or {}

    def last() -> dict[str, Any]:
        last_frames = json.loads(feed.history.frames(feed.history.end - 1, 1))
        return last_frames[0] if last_frames else {}

    async def steps() -> None:
        await until(lambda: part("fabric").get("running") is False)
        assert "no fabric 't' is running" in part("fabric")["why"]
        with ExitStack() as stack:
            port = stack.enter_context(fake.controller())
            stack.enter_context(fake.emulator(names.emulator_socket))
            up(names, fake, port)
            await until(lambda: part("controller").get("reachable"))
            await until(lambda: part("emulator").get("reachable"))
            assert feed.picture()["fabric"] == "ring,4"
            fake.pass_time(1_000_000, s1_2=0.5)
            await until(lambda: last().get("rows"))
            assert last()["rows"] == [[_number(feed.picture(), "s1:2"), 0, 500, 0, 0, 0]]
            fake.freeze(500_000)
            knot = await until(lambda: last().get("knot"))
            assert knot["waiting"] == {CYCLE[0]: [{"from": "h1", "to": "h3", "bytes": 4000}]}
            assert {row[3] for row in last()["rows"] if row[4]} == {1000}
            assert feed.events()[-1]["kind"] == "deadlock"
            fake.deadlock = None
            fake.pass_time(1_000)
            await until(lambda: feed.events()[-1]["kind"] == "deadlock-over")
        await until(lambda: part("emulator").get("reachable") is False)
        await until(lambda: part("controller").get("reachable") is False)
        names.state_file.unlink()
        await until(lambda: part("fabric").get("running") is False)
        other = FakeFabric(load("torus,3,3"))
        with other.emulator(names.emulator_socket):
            up(names, other, started_at=2.0)
            await until(lambda: feed.picture()["fabric"] == "torus,3,3")
            await until(lambda: part("emulator").get("reachable"))
            assert feed.history.timeline()["times"] == []

    running(source, steps)


def test_a_page_tells_of_a_loop_and_what_sends_frames_on(
    names: Names, fake: FakeFabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PARTS_EVERY_S", 0.02)
    sent_on = {"switch": "s2", "to": "s2:2", "by": "controller", "rule": None}
    asked: list[tuple[str, ...]] = []

    def find(_names: Names, _fabric: Any, loops: Any, hops: Any, pids: Any) -> Any:
        asked.extend(pids)
        assert len(hops) == len(loops) == 1
        return {tuple(loops[0]["channels"]): [sent_on]}

    monkeypatch.setattr(forwarding_loops, "find_reasons", find)
    source = LiveFabric(names)
    loop = {"since_us": 1, "last_us": 2_000_000, "passes": 5, "present": True}
    line = "forwarding loop: the same frames come again and again by s1:2 -> s2:2 -> s1:2"

    def told(part: str) -> list[str]:
        texts: list[str] = source.feed.state.get(part) or []
        return [text for text in texts if "forwarding loop" in text]

    async def steps() -> None:
        with fake.emulator(names.emulator_socket):
            up(names, fake)
            await until(lambda: (source.feed.state.get("emulator") or {}).get("reachable"))
            assert told("problems") == told("notes") == []
            fake.loops = [{**loop, "channels": ["s1:2", "s2:2"]}]
            reason = "; sent on at s2 by a packet-out of a controller"
            await until(lambda: told("problems") == [line + reason])
            fake.loops = [{**fake.loops[0], "present": False}]
            await until(lambda: told("notes") and not told("problems"))

    running(source, steps)
    assert asked == []  # no Open vSwitch is part of this fabric


def _number(picture: dict[str, Any], channel: str) -> int:
    return [row["name"] for row in picture["channels"]].index(channel)


def test_events_and_changes_of_the_controller_are_passed_on(fake: FakeFabric) -> None:
    fake.events = [b'id: 1\nevent: rerouted\ndata: {"time": 5.0, "tier": 1}\n\n', b"event: x\n"]
    fake.changes = [{"number": 1, "tier": 1}]
    with fake.controller() as port:
        source = LiveController(("127.0.0.1", port), "its-token-is-long")
        feed = source.feed

        async def steps() -> None:
            await until(lambda: feed.events())
            await until(lambda: feed.changes["count"])
            await until(lambda: feed.picture()["fabric"] == "ring,4")

        running(source, steps)
        assert feed.events()[0] == {"time": 5.0, "tier": 1, "kind": "rerouted"}
        check = feed.state["controller"]["check"]
        assert check["cycle"] == CYCLE
        assert check["text"] == f"CAN DEADLOCK under PAUSE: {' -> '.join([*CYCLE, CYCLE[0]])}"
        answer = source.actions["drain"]({"parts": ["s1-s2"], "dry_run": True})
        assert answer["tier"] == 1
        assert fake.requests == [("/drain", {"parts": ["s1-s2"], "dry_run": True})]


def test_the_page_says_where_its_token_is(names: Names) -> None:
    def hint(source: LiveFabric | LiveController) -> str:
        return source.feed.picture()["token_hint"]  # type: ignore[no-any-return]

    assert hint(LiveFabric(names)) == f"printed by: sudo cat {names.token_file}"
    assert "was given with --token-file" in hint(LiveController(("127.0.0.1", 1), "a-token"))
    assert "started without --token-file" in hint(LiveController(("127.0.0.1", 1), None))


def test_actions_call_the_controller_of_the_fabric(names: Names, fake: FakeFabric) -> None:
    with fake.controller() as port:
        up(names, fake, port)
        actions = actions_of(names)
        assert actions["change"]({"engine": "updown"})["performed"]
        assert fake.requests == [("/change", {"engine": "updown"})]
        with pytest.raises(EmulationError, match="no link 's1-s9'"):
            actions["cut"]({"link": "s1-s9"})
        assert LiveFabric(names).token() == "a-token-of-this-test"


@pytest.mark.parametrize(
    ("fields", "message"),
    [({}, "'link' is missing"), ({"link": 3}, "must be str"), ({"link": "x", "y": 1}, "'y' is")],
)
def test_wrong_fields_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(EmulationError, match=message):
        checked(fields, link=str, silent=bool)


@pytest.fixture
def frames(fake: FakeFabric) -> Frames:
    picture = Picture(fake.fabric)
    return Frames(picture.index, picture.hosts_by_mac)


def test_no_frame_where_virtual_time_stands_still_or_counters_are_reset(
    fake: FakeFabric, frames: Frames
) -> None:
    fake.pass_time(1000, s1_2=1.0)
    counters = {"do": "counters"}
    assert frames.next(fake.answer(counters), None) is None
    assert frames.next(fake.answer(counters), None) is None
    fake.pass_time(1000)
    frame = frames.next(fake.answer(counters), None)
    assert frame is not None
    assert frame["rows"] == []

    fresh = FakeFabric(fake.fabric)
    fresh.pass_time(5000)
    assert frames.next(fresh.answer(counters), None) is None


def test_probes_are_no_load(fake: FakeFabric, frames: Frames) -> None:
    counters = {"do": "counters"}
    frames.next(fake.answer(counters), None)
    fake.pass_time(250_000)
    fake.send_probes("s1:2", 3)
    frame = frames.next(fake.answer(counters), None)
    assert frame is not None
    assert frame["rows"] == []
    fake.pass_time(250_000, s1_2=0.5)
    fake.send_probes("s1:2", 3)
    frame = frames.next(fake.answer(counters), None)
    assert frame is not None
    assert [row[2] for row in frame["rows"]] == [500]


def test_a_knot_has_no_flows_of_probes(fake: FakeFabric, frames: Frames) -> None:
    fake.freeze(1000)
    assert fake.deadlock is not None
    waiting = fake.deadlock["waiting"][CYCLE[0]]
    probe = {"from": "06:6b:6e:00:00:02", "to": "01:80:c2:00:00:0e", "bytes": 64}
    fake.deadlock["waiting"] = {CYCLE[0]: [probe, *waiting], CYCLE[1]: [probe]}
    knot = frames.knot(fake.deadlock)
    assert knot["waiting"] == {
        CYCLE[0]: [{"from": "h1", "to": "h3", "bytes": 4000}],
        CYCLE[1]: [],
    }


def test_a_large_fabric_is_drawn_as_its_drawing_is() -> None:
    picture = Picture(load("fattree3,8")).as_json()
    assert len(picture["nodes"]) == 80 + 128
    assert len(picture["channels"]) == 2 * (256 + 128)
    places = {(node["x"], node["y"]) for node in picture["nodes"]}
    assert len(places) == len(picture["nodes"])


def test_a_recording_of_an_emulated_fabric_is_replayed(names: Names, fake: FakeFabric) -> None:
    daemon = Daemon(names.emulator_socket, {})
    fake.pass_time(1000)

    def progress(_: float) -> None:
        fake.freeze(10_000)

    with fake.emulator(names.emulator_socket):
        recorded = record(daemon, fake.fabric, 0.1, 0.02, progress)
    path = names.directory / f"ring{recording.SUFFIX}"
    recording.write(path, recorded)
    still = replay(recording.read(path))
    frames = json.loads(still.feed.history.frames(0, 100))
    assert frames
    assert frames[-1]["knot"]["waiting"][CYCLE[0]][0]["to"] == "h3"
    assert {row[3] for row in frames[-1]["rows"] if row[4]} == {1000}
    assert frames[-1]["rows"][0][0] == _number(still.feed.picture(), "s1:2")


def test_a_deadlock_between_samples_is_in_the_last_frame_again(fake: FakeFabric) -> None:
    frames = Frames(Picture(fake.fabric).index, Picture(fake.fabric).hosts_by_mac)
    assert frames.again(None) is None
    frames.next(fake.answer({"do": "counters"}), None)
    fake.pass_time(250_000, s1_2=0.5)
    before = frames.next(fake.answer({"do": "counters"}), None)
    fake.freeze(100_000)
    frame = frames.again(fake.deadlock)
    assert before is not None
    assert frame is not None
    assert (frame["rows"], frame["at_us"]) == (before["rows"], 350_000)
    assert frame["knot"]["cycle"] == CYCLE
    assert before["knot"] is None


@pytest.mark.parametrize(
    ("stretch", "slow_down", "share"),
    [
        (None, 1.0, live.SHARE),
        (1.0, 1.0, live.SHARE),
        (50.0, 50.0, live.SHARE),
        (1.5, 1.0, live.BUSY_SHARE),
        (75.0, 50.0, live.BUSY_SHARE),
    ],
)
def test_samples_take_less_of_a_machine_that_does_not_keep_up(
    stretch: float | None, slow_down: float, share: int
) -> None:
    assert live.share_of({"stretch_now": stretch, "slow_down": slow_down}) == share
