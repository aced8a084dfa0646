"""A state file that is damaged, and a disk that is full: what a whole controller does and says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.seeded.world import Setting, World

LINK = "s1:2-s2:3"
RETURNS_AFTER_S = 15.0
"""Routes return to a link that is up again when failures have settled."""


def _until(world: World, condition: Callable[[], bool], limit_s: float = 30) -> None:
    end_s = world.hub.now_s + limit_s
    while not condition():
        assert world.hub.now_s < end_s, world.lines[-8:]
        world.hub.sleep_outside(0.1)


def _status(world: World) -> dict[str, Any]:
    leader = world.leader()
    if leader is None or leader.app is None:
        return {"ready": False, "problems": ["no controller leads"], "drained": None}
    return leader.app.service.status.as_json(world.hub.now_s)


def _is_well(world: World) -> bool:
    status = _status(world)
    return status["ready"] and not status["problems"] and not status["routes"]["changing"]


def _request(world: World, path: str, **body: Any) -> None:
    leader = world.leader()
    assert leader is not None
    leader.request(path, body, world.token)


def _changed_to_updown(world: World) -> None:
    _until(world, lambda: _is_well(world))
    _request(world, "/change", engine="updown", root="s3")
    _until(world, lambda: _status(world)["request"]["engine"] == "updown" and _is_well(world))


def _held(world: World) -> dict[str, object]:
    return {name: dict(switch.contents.flows) for name, switch in world.switches.items()}


def _restarted_with(world: World, *damaged: str) -> None:
    """Cut files short while the controller is down, and have it lead again."""
    controller = world.controllers["c1"]
    controller.kill()
    for name in damaged:
        world.disk[name] = world.disk[name][:9]
    world.start(controller)
    _until(world, lambda: _status(world)["drained"] is not None)
    world.hub.sleep_outside(10)


def _drained(world: World) -> None:
    _until(world, lambda: _is_well(world))
    _request(world, "/drain", parts=[LINK])
    _until(world, lambda: _status(world)["drained"] == [LINK] and _is_well(world))


def test_drained_parts_are_adopted_and_nothing_changes_until_it_is_confirmed() -> None:
    with World(Setting(1)).running() as world:
        _drained(world)
        before = _held(world)
        _restarted_with(world, "state.json")
        assert _held(world) == before
        status = _status(world)
        assert (status["ready"], status["drained"]) == (False, [LINK])
        (line,) = status["problems"]
        assert f"drained, by the rules of the switches: {LINK}; only repairs" in line
        world.network.set_link("s3:2-s4:3", up=False)
        _until(world, lambda: _status(world)["routes"]["failed"] == ["s3:2-s4:3"])
        world.network.set_link("s3:2-s4:3", up=True)
        _until(world, lambda: _status(world)["routes"]["failed"] == [])
        _request(world, "/confirm")
        _until(world, lambda: _is_well(world))
        assert _status(world)["drained"] == [LINK]
        assert {"state.json", "state-damaged.json"} <= world.disk.keys()
        _restarted_with(world)
        _until(world, lambda: _is_well(world))
        assert _status(world)["drained"] == [LINK]
        assert not world.violations


def test_rules_of_another_engine_stay_until_it_is_confirmed() -> None:
    with World(Setting(2, options="engine: dor")).running() as world:
        _changed_to_updown(world)
        before = _held(world)
        _restarted_with(world, "state.json")
        assert _held(world) == before
        assert not _status(world)["ready"]
        _request(world, "/change")
        _until(world, lambda: _is_well(world))
        assert _held(world) != before
        assert not world.violations


def test_options_that_do_not_exist_are_as_a_damaged_file() -> None:
    with World(Setting(6, options="engine: dor")).running() as world:
        _changed_to_updown(world)
        before = _held(world)
        world.disk["state.json"] = world.disk["state.json"].replace("updown", "updawn")
        _restarted_with(world)
        assert _held(world) == before
        status = _status(world)
        assert (status["ready"], status["unconfirmed"]) == (False, True)
        (line,) = status["problems"]
        assert line.startswith("the state file is damaged, ")
        assert "'updawn'" in line
        _request(world, "/confirm")
        _until(world, lambda: _is_well(world))
        assert not world.violations


def test_the_file_before_the_last_request_is_used() -> None:
    with World(Setting(3)).running() as world:
        _drained(world)
        _request(world, "/undrain", parts=[LINK])
        _until(world, lambda: _status(world)["drained"] == [] and _is_well(world))
        _restarted_with(world, "state.json")
        status = _status(world)
        assert (status["ready"], status["drained"]) == (True, [LINK])
        (line,) = status["problems"]
        assert f"the one before the last request is used; drained: {LINK};" in line
        _request(world, "/undrain", parts=[LINK])
        _until(world, lambda: _is_well(world))
        assert not world.violations


def test_a_full_disk_is_a_problem_as_long_as_it_lasts() -> None:
    with World(Setting(4)).running() as world:
        _until(world, lambda: _is_well(world))
        world.hub.sleep_outside(5)
        world.full_until_s = world.hub.now_s + 1000
        for up in (False, True):
            world.network.set_link(LINK, up=up)
            world.hub.sleep_outside(RETURNS_AFTER_S)
        lines = _status(world)["problems"]
        for what in ("what links have lost", "what missing switches hold"):
            assert any(line.startswith(f"a successor will not know {what}: ") for line in lines)
        _request(world, "/drain", parts=[LINK])
        world.hub.sleep_outside(5)
        assert _status(world)["drained"] == [], "what cannot be kept is refused"
        world.full_until_s = 0.0
        _until(world, lambda: _is_well(world))
        assert not world.violations


def test_other_damaged_files_are_problems_and_the_controller_starts() -> None:
    with World(Setting(5)).running() as world:
        _until(world, lambda: _is_well(world))
        for up in (False, True):
            world.network.set_link(LINK, up=up)
            world.hub.sleep_outside(RETURNS_AFTER_S)
        world.hub.sleep_outside(5)
        before = _held(world)
        _restarted_with(world, "state-lost.json", "state-rules.json")
        assert _held(world) == before
        status = _status(world)
        assert status["ready"]
        (line,) = status["problems"]
        assert line.startswith("what links have lost is not known: ")
        for up in (False, True):
            world.network.set_link(LINK, up=up)
            world.hub.sleep_outside(RETURNS_AFTER_S)
        _until(world, lambda: _is_well(world))
        assert not world.violations
