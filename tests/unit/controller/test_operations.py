"""Requests of operators to a controller, without switches: the model confirms every step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from knotless.base.errors import FaultError, KnotlessError
from knotless.base.http_rules import HttpError
from knotless.controller import runtime
from knotless.controller.config import Config, parse
from knotless.controller.desired import DesiredState
from knotless.controller.operations import Operations
from knotless.controller.overrides import (
    Overrides,
    StateFile,
    damaged_file,
    file_before,
    read_overrides,
    recovered_overrides,
)
from knotless.controller.status import Status
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.inherited import inherited_rules
from knotless.controller.updates.journal import History, UpdateJournal
from knotless.controller.updates.planning import plan_update
from knotless.forwarding.openflow.directory import read_dir
from knotless.topologies import load
from knotless.topologies.failures import NO_FAILURES
from knotless.verification.changes.record import digest, write_step_files
from knotless.verification.check import check
from tests.support.panics import PANIC, PanicException


def in_place(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


class Model:
    """A controller whose switches confirm at once."""

    def __init__(
        self,
        text: str,
        file: Path | None = None,
        *,
        read_again: Callable[[float], None] = lambda _max_age_s: None,
    ) -> None:
        self.config: Config = parse(text)
        desired = DesiredState.compute(self.config, load(self.config.fabric))
        self.state, self.history = FabricState(desired), History(3, clock=lambda: 7.0)
        self.state_file = StateFile(
            config=self.config,
            overrides=Overrides(),
            state=self.state,
            path=file,
        )
        self.operations = Operations(
            state=self.state,
            state_file=self.state_file,
            journal=UpdateJournal(),
            change_to=self.state.replace,
            read_again=read_again,
        )
        self.confirm()

    def confirm(self) -> None:
        for name in list(self.state.update.progress.waiting):
            self.state.update.confirm(name)
            self.history.confirmed(name, self.state.update.progress.number)

    def settle(self) -> None:
        """Perform what is requested."""
        transition = self.state.update
        transition.aim(self.state.desired, NO_FAILURES)
        while transition.is_due:
            task = transition.task()
            if task is not None:
                transition.accept(plan_update(task))
            transition.begin()
            self.confirm()
            transition.quiescent()
        assert transition.progress.plan is not None
        self.history.add(transition.progress.plan, transition.progress.number, 0.5)

    def post(self, what: str, **body: object) -> dict[str, Any]:
        answer: dict[str, Any] = getattr(self.operations, what)(json.dumps(body).encode())
        again: dict[str, Any] = json.loads(json.dumps(answer))
        return again


def test_a_dry_run_shows_the_steps_and_changes_nothing(tmp_path: Path) -> None:
    model = Model("fabric: ring,4\nengine: updown\n", tmp_path / "state")
    before = model.state.desired
    answer = model.post("change", root="s3", dry_run=True, rules=True)
    assert {"tier", "steps", "rules_changed", "certificate"} <= answer.keys()
    assert answer["performed"] is False
    assert answer["tier"] == answer["certificate"]["tier"] == 2
    assert len(answer["files"]) == len(answer["steps"]) + 1
    assert answer["rules_changed"] == sum(step["rules_changed"] for step in answer["steps"])
    assert (model.state.desired, (tmp_path / "state").exists()) == (before, False)
    write_step_files(answer["files"], answer["certificate"], tmp_path / "steps")
    digests = [
        digest(read_dir(tmp_path / "steps" / str(k))[1]) for k in range(len(answer["files"]))
    ]
    proven = answer["certificate"]
    assert digests == [proven["before"], *(step["sha256"] for step in proven["steps"])]


def test_a_change_is_relative_to_the_configuration(tmp_path: Path) -> None:
    model = Model("fabric: ring,4\nengine: updown\n", tmp_path / "state")
    model.post("change", root="s3")
    model.settle()
    assert model.state.desired.plan.request.root == "s3"
    kept = read_overrides(tmp_path / "state")
    assert kept.options == {"root": "s3", "flow_control": "pause"}
    assert model.post("change", select="low-port")["performed"]
    model.settle()
    assert model.state.desired.plan.request.root is None
    model.post("change")
    model.settle()
    assert read_overrides(tmp_path / "state").options == {}
    assert model.post("change")["tier"] == 0


def test_a_drained_part_carries_nothing_after_the_change(tmp_path: Path) -> None:
    model = Model("fabric: torus,3,3\n", tmp_path / "state")
    answer = model.post("drain", parts=["s5", "s1-s2"])
    assert answer["drained"] == Status(model.state).as_json(0.0)["drained"] == ["s1:2-s2:3", "s5"]
    assert Status(model.state).as_json(0.0)["routes"]["changing"] is True
    for step in answer["certificate"]["steps"]:
        assert (step["acyclic"], step["lost"], step["undelivered"]) == (True, 0, 0)
    model.settle()
    status = Status(model.state).as_json(0.0)
    assert (status["routes"]["drained"], status["routes"]["changing"]) == (answer["drained"], False)
    assert [line for line in status["problems"] if "drained" in line] == []
    goal = model.state.update.goal
    assert goal.failures == NO_FAILURES
    assert len(goal.avoided.failures.links) == 4
    # A controller that starts now finds the rules that it wants, in whatever plane they are.
    again = FabricState(
        DesiredState.compute(model.config, goal.desired.fabric, tuple(answer["drained"]))
    )
    fabric = goal.desired.fabric
    held = {name: model.state.update.progress.wanted(name) for name in goal.desired.rules}
    again.update.inherit(inherited_rules(again.desired, NO_FAILURES, held, fabric))
    for name, rules in held.items():
        assert set(again.update.progress.wanted(name).rules) == set(rules.rules)
    assert model.post("undrain", parts=["s5"])["drained"] == ["s1:2-s2:3"]
    assert read_overrides(tmp_path / "state").drained == ("s1:2-s2:3",)


@pytest.mark.parametrize(
    ("what", "body", "words"),
    [
        ("change", {"engine": "magic"}, "there is no routing engine 'magic'"),
        ("change", {"vcs": 9}, "vcs: "),
        ("change", {"engin": "updown"}, "unknown key 'engin'"),
        ("change", {"flow_control": "pfc"}, "the links use pause, which does not change"),
        ("change", {"engine": "dor", "vcs": 1, "select": "low-port"}, "CAN DEADLOCK"),
        ("change", {"tagging": "host"}, "the hosts would have to change their VLAN tags"),
        ("drain", {"parts": ["s9"]}, "has no link or switch 's9'"),
        ("undrain", {"parts": ["s1"]}, "s1 is not drained; drained is nothing"),
    ],
)
def test_a_refusal_changes_nothing(
    tmp_path: Path, what: str, body: dict[str, object], words: str
) -> None:
    model = Model("fabric: ring,4\nengine: updown\n", tmp_path / "state")
    before = model.state.desired
    with pytest.raises(KnotlessError) as caught:
        model.post(what, **body)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (model.state.desired, (tmp_path / "state").exists()) == (before, False)


def test_what_connects_hosts_is_not_drained() -> None:
    model = Model("fabric: mesh,3\n")
    with pytest.raises(
        KnotlessError, match="^s1-s2 cannot be drained: some hosts could .* without s1:"
    ):
        model.post("drain", parts=["s1-s2"])
    ring = Model("fabric: ring,4\n")
    ring.post("drain", parts=["s2"])
    ring.settle()
    with pytest.raises(KnotlessError, match="^s1-s4 cannot be drained: .* without s2$"):
        ring.post("drain", parts=["s1-s4"])


def test_requests_wait_for_the_change_before() -> None:
    model = Model("fabric: ring,4\nengine: updown\n")
    model.post("change", root="s3")
    transition = model.state.update
    transition.aim(model.state.desired, NO_FAILURES)
    task = transition.task()
    assert task is not None
    transition.accept(plan_update(task))
    transition.begin()
    with pytest.raises(HttpError, match="a change of routes goes on"):
        model.post("drain", parts=["s1"])


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"dry_run": 1}', b'{"dry_run": "yes"}', b"\xff"])
def test_a_malformed_request_is_refused(body: bytes) -> None:
    with pytest.raises(HttpError):
        Model("fabric: ring,4\n").operations.change(body)


def test_the_history_says_what_was_dropped_and_for_how_long() -> None:
    model = Model("fabric: ring,4\nengine: updown\nroot: s3\nflow_control: pause\n")
    answer = model.post("change", engine="lturn", root=None)
    assert answer["dropped_pairs"] == len(answer["dropped"]) > 0
    model.history.dropped(0.25)
    model.settle()
    model.post("change")
    model.settle()
    entries: Any = model.history.as_json()["changes"]
    assert (entries[0]["dropped_pairs"], entries[0]["dropped_s"]) == (answer["dropped_pairs"], 0.25)
    assert entries[1]["dropped_s"] == 0.0
    while model.history.complete_record(in_place):
        pass
    assert entries[0]["certificate"]["dropped"] == answer["dropped"]


def test_the_history_keeps_the_last_changes_with_certificates() -> None:
    model = Model("fabric: ring,4\nengine: updown\n")
    for root in ("s2", "s3", "s4", "s1"):
        model.post("change", root=root)
        model.settle()
    history = model.history.as_json()
    entries: Any = history["changes"]
    assert (history["count"], [entry["number"] for entry in entries]) == (4, [2, 3, 4])
    assert [entry["certificate"] for entry in entries] == [None] * 3
    while model.history.complete_record(in_place):
        pass
    for entry in entries:
        assert entry["tier"] == entry["certificate"]["tier"]
        assert len(entry["confirmed"]) == len(entry["certificate"]["steps"])
        assert all(times and set(times.values()) == {7.0} for times in entry["confirmed"])


def _panic(*_what: object) -> Any:
    raise PanicException(PANIC)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_panic_ends_the_request_and_is_a_problem_for_a_minute(
    dry_run: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model("fabric: ring,4\nengine: updown\n")
    before = model.state.desired
    with monkeypatch.context() as patch:
        patch.setattr("knotless.controller.updates.planning.plan_change", _panic)
        with pytest.raises(FaultError) as caught:
            model.post("change", root="s3", dry_run=dry_run)
    line = "planning failed: PanicException: index out of bounds: the len is 512 but the index"
    assert str(caught.value).startswith(line)
    assert model.state.desired is before
    planning, now_s = model.state.planning, runtime.now_s()
    problem = f"the last request was not performed: {caught.value}"
    assert planning.problems(now_s) == [problem]
    assert problem in Status(model.state).problems(now_s)
    assert planning.problems(now_s + 60) == []
    model.post("change", root="s3")
    model.settle()
    assert model.state.desired.plan.request.root == "s3"


def test_planning_that_takes_more_than_30_s_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[list[str], list[str]]] = []

    def execute(function: Callable[..., Any], *arguments: Any) -> Any:
        planning, now_s = model.state.planning, runtime.now_s()
        seen.append((planning.problems(now_s + 29), planning.problems(now_s + 31)))
        return function(*arguments)

    monkeypatch.setattr(runtime, "in_thread", execute)
    model = Model("fabric: ring,4\nengine: updown\n")
    model.post("change", root="s3")
    assert seen[-1] == ([], ["planning of the last request takes more than 30 s"])
    assert model.state.planning.problems(runtime.now_s() + 31) == []


def test_a_group_is_added_and_removed_in_proven_steps() -> None:
    model = Model("fabric: ring,4\n")
    for groups in ({1: ["h1", "h2"]}, {1: ["h1", "h2"], 2: ["h2", "h3"]}, {2: ["h1", "h4"]}, {}):
        before = {group.number for group in model.state.desired.plan.multicast}
        answer = model.post("change", multicast=groups)
        assert answer["certificate"]["proven"]
        model.settle()
        assert model.state.update.progress.plan is not None
        change = model.state.update.progress.plan.change
        assert {group.number for group in change.groups} == before | groups.keys()
        held = {
            name: model.state.update.progress.wanted(name) for name in model.state.desired.rules
        }
        plan = model.state.desired.plan
        verdict = check(plan.fabric, held, multicast=plan.multicast)
        assert (verdict.ok, verdict.multicasts_undelivered) == (True, 0)


def test_what_switches_hold_is_read_before_a_request_is_planned(tmp_path: Path) -> None:
    ages: list[float] = []
    text = "fabric: ring,4\nengine: updown\nreread_interval_s: 7\n"
    model = Model(text, tmp_path / "state", read_again=ages.append)
    model.state.observed.by_name["s2"].read_s = runtime.now_s() - 3
    answer = model.post("drain", parts=["s1-s2"], dry_run=True)
    assert ages == [7]
    read_age_s = answer["certificate"]["read_age_s"]
    assert 3 <= read_age_s.pop("s2") < 1000
    assert read_age_s == dict.fromkeys(("s1", "s3", "s4"))


def test_a_request_is_refused_while_rules_are_missing(tmp_path: Path) -> None:
    def read_again(_max_age_s: float) -> None:
        raise KnotlessError("s2: rules are missing")

    model = Model("fabric: ring,4\nengine: updown\n", tmp_path / "state", read_again=read_again)
    before = model.state.desired
    for request, body in (("drain", {"parts": ["s1-s2"]}), ("change", {"root": "s3"})):
        with pytest.raises(KnotlessError, match="rules are missing"):
            model.post(request, **body)
    assert model.state.desired is before
    assert not (tmp_path / "state").exists()


# --- a state file that is damaged -----------------------------------------------------------------


def test_each_request_keeps_the_file_of_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    model = Model("fabric: ring,4\n", file)
    model.post("drain", parts=["s1-s2"])
    assert not file_before(file).exists()
    model.settle()
    model.post("undrain", parts=["s1-s2"])
    assert read_overrides(file_before(file)).drained == ("s1:2-s2:3",)
    assert recovered_overrides(file) == (Overrides(), None)


def test_any_cut_of_a_state_file_gives_the_one_before(tmp_path: Path) -> None:
    """And none gives an error; where none is before it, or that is damaged too, nobody knows."""
    file, ring = tmp_path / "state.json", load("ring,4")
    config = parse("fabric: ring,4\n")
    first = Overrides().with_drained(ring, ["s3"])
    first.save(file)
    first.with_options(config, {"root": "s2"}).with_drained(ring, ["s1-s2"]).save(file)
    whole = file.read_bytes()
    for length in range(len(whole) - 1):
        file.write_bytes(whole[:length] + (b"\xff" if length % 7 == 0 else b""))
        recovered, damage = recovered_overrides(file)
        assert recovered == first
        assert damage is not None
        assert damage.startswith(str(file))
    before = file_before(file).read_bytes()
    file_before(file).write_bytes(before[:-3])
    assert recovered_overrides(file)[0] is None
    file_before(file).unlink()
    assert recovered_overrides(file)[0] is None


def test_a_damaged_file_is_kept_aside_and_the_good_one_before_it_stays(tmp_path: Path) -> None:
    file, ring = tmp_path / "state.json", load("ring,4")
    for name in ("s1", "s2"):
        Overrides().with_drained(ring, [name]).save(file)
    damaged = file.read_bytes()[:20]
    file.write_bytes(damaged)
    Overrides().with_drained(ring, ["s3"]).save(file)
    assert damaged_file(file).read_bytes() == damaged
    assert read_overrides(file_before(file)).drained == ("s1",)
    assert read_overrides(file).drained == ("s3",)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("request_", ["confirm", "undrain", "change"])
def test_a_request_or_a_confirmation_ends_the_problem(
    tmp_path: Path, request_: str, *, is_known: bool
) -> None:
    file = tmp_path / "state.json"
    file.write_text('{"drained": ')
    model = Model("fabric: ring,4\n", file)
    model.state_file.recover("state.json: cut short", is_known=is_known)
    (line,) = Status(model.state).problems(0.0)
    assert line.startswith("the state file is damaged, and ")
    assert line.endswith("state.json: cut short")
    assert model.state.is_unconfirmed is not is_known
    model.state_file.mend()
    assert file.read_text() == '{"drained": ', "nobody has confirmed what it should hold"
    model.post(request_, **({"parts": []} if request_ == "undrain" else {}))
    assert Status(model.state).problems(0.0) == []
    assert not model.state.is_unconfirmed
    assert read_overrides(file) == Overrides()
    assert damaged_file(file).read_text() == '{"drained": '


def test_a_running_controller_writes_a_damaged_file_again(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    model = Model("fabric: ring,4\n", file)
    model.post("drain", parts=["s1-s2"])
    file.write_text('{"drained": ["s1:2')
    model.state_file.mend()
    assert read_overrides(file).drained == ("s1:2-s2:3",)
    assert Status(model.state).problems(0.0) == []


def test_a_state_file_that_cannot_be_written_is_a_problem_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "state.json"
    model = Model("fabric: ring,4\n", file)
    model.post("drain", parts=["s1-s2"])
    file.write_text("{")

    def full(path: Path, *_text: object, **_aside: object) -> None:
        raise KnotlessError(f"{path}: cannot be written: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(runtime, "keep", full)
        model.state_file.mend()
        line = f"a successor will not know what operators have requested: {file}: cannot be written"
        assert Status(model.state).problems(0.0)[0].startswith(line)
        with pytest.raises(KnotlessError, match="No space left"):
            model.post("undrain", parts=["s1-s2"])
    model.state_file.mend()
    assert Status(model.state).problems(0.0) == []
    assert read_overrides(file).drained == ("s1:2-s2:3",)
