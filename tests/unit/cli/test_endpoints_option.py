"""``--endpoints`` of plans and of checks of rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from knotless.cli.main import main
from tests.support import REPOSITORY

FILES = REPOSITORY / "tests" / "data" / "fabrics" / "control-knot"
OWN = """
classes:
  request: {sends_before_taking: [reply], outstanding: 4, reserve: 45}
  reply: {}
"""


def run(*words: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, list(words), prog_name="knotless")


def values(*words: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run(*words, "--json").stdout)
    return answer


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("endpoints") / "rules")
    assert run("flows", "fattree2,4", "--out", folder).exit_code == 0
    return folder


def test_a_plan_names_messages_inequality_and_remedy(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(OWN)
    answer = run("plan", "fattree2,4", "--endpoints", str(own))
    assert answer.exit_code == 1
    lines = answer.stdout.splitlines()
    assert lines[0] == "fattree2,4 with fattree: CAN DEADLOCK under PAUSE"
    assert "  h2 must send a reply before it takes the request of h1" in lines
    assert any("15 hosts x 4 outstanding = 60 > reserve of 45" in line for line in lines)
    assert "    request: outstanding 3" in lines


def test_the_same_for_rules(rules: str, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(OWN)
    answer = run("check", rules, "--endpoints", str(own))
    assert answer.exit_code == 1
    assert "h2 must send a reply before it takes the request of h1" in answer.stdout
    assert "request: outstanding 3" in answer.stdout
    safe = run("check", rules, "--endpoints", "rdma-read")
    assert safe.exit_code == 0
    assert "15 hosts x 16 outstanding = 240 <= reserve of 240" in safe.stdout
    assert "hosts take what arrives" not in safe.stdout
    assert "hosts take what arrives" in run("check", rules, "--endpoints", "sink").stdout


def test_rules_do_not_keep_messages_apart(rules: str, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("classes: {request: {sends_before_taking: [reply]}, reply: {priority: 1}}\n")
    assert values("plan", "fattree2,4", "--endpoints", str(own))["safe"] is True
    checked = values("check", rules, "--endpoints", str(own), "--flow-control", "pfc")
    assert checked["safe"] is False
    assert any("those of classes are not used" in note for note in checked["notes"])
    assert "virtual-channel" not in [remedy["kind"] for remedy in checked["remedies"]]


def test_json_has_the_messages(rules: str) -> None:
    for answer in (
        values("plan", "fattree2,4", "--endpoints", "request-reply"),
        values("check", rules, "--endpoints", "request-reply"),
    ):
        assert answer["endpoints"] == "request-reply"
        assert answer["through_hosts"] is True
        assert [(r["message"], r["suffices"]) for r in answer["reserves"]] == [("request", False)]
        step = answer["witnesses"][1]
        assert (step["message"], step["sends"]) == ("request", "reply")
    assert "endpoints" not in values("plan", "fattree2,4")


def test_what_is_not_judged_is_refused(rules: str, tmp_path: Path) -> None:
    settings, rdma = tmp_path / "switch.yaml", ["--endpoints", "rdma-read"]
    settings.write_text("lossless: [0]\n")
    for words, text in (
        (["check", rules, "--proof", str(tmp_path / "proof")], "not with --endpoints"),
        (["check", rules, "--failures", "1"], "--failures does not judge what hosts send"),
        (["check", rules, "--switch", str(settings)], "--switch does not judge"),
        (["plan", "ring,4", "--switch", str(settings)], "--switch does not judge"),
        (["plan", "ring,4", "--compare"], "--endpoints is about one plan"),
        (["plan", "ring,4", "--endpoints", "rdma"], "there are no end points 'rdma'"),
        (["check", str(FILES), "--freeze"], "--freeze does not judge what hosts send"),
        (["check", str(FILES), "--watch"], "--watch is for verdicts, not with --endpoints"),
    ):
        answer = run(*words, *(rdma if "--endpoints" not in words else []))
        assert answer.exit_code == 2, words
        assert text in answer.stderr
        assert answer.stderr.count("\n") == 1
    assert not (tmp_path / "proof").exists()


def test_a_cycle_through_hosts_is_drawn_between_switches(rules: str, tmp_path: Path) -> None:
    drawing = tmp_path / "cycle.svg"
    run("check", rules, "--endpoints", "request-reply", "--draw", str(drawing))
    assert drawing.read_text().startswith("<?xml")


def test_traffic_freezes_a_fabric_through_its_hosts(rules: str, tmp_path: Path) -> None:
    trace = str(tmp_path / "freeze.csv")
    plan = ["mesh,3,hosts=2", "--endpoints", "request-reply"]
    found = values("plan", *plan, "--freeze", "--write-trace", trace)
    assert found["freezes"] is True
    assert any(channel.startswith("h") for channel in found["freeze"]["cycle"])
    assert "hosts take what arrives" not in found["freeze"]["assumes"]
    again = values("simulate", *plan, "--turns", "--trace", trace)
    assert again["deadlock"] is True
    assert again["endpoints"] == "request-reply"
    spared = values("simulate", plan[0], "--endpoints", "rdma-read", "--turns", "--trace", trace)
    assert spared["deadlock"] is False
    assert spared["answered"] == spared["packets"] > 0
    safe = values("check", rules, "--endpoints", "rdma-read", "--freeze")
    assert safe["freezes"] is False


def test_what_is_not_simulated_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("classes: {a: {sends_before_taking: [b, c]}, b: {}, c: {}}\n")
    relay = tmp_path / "relay.yaml"
    relay.write_text("classes: {a: {sends_before_taking: [a]}}\n")
    load = ["--pattern", "uniform", "--load", "0.5"]
    for words, text in (
        ([*load, "--endpoints", str(own)], "sends one message before it takes a a, not 2"),
        ([*load, "--endpoints", str(relay)], "no class is sent for itself alone"),
        ([*load, "--endpoints", "rdma-read", "--flow-control", "none"], "do not pause"),
        ([*load, "--endpoints", "rdma-read", "--flow-control", "credits"], "not with credits"),
        ([*load, "--endpoints", "rdma-read", "--transport", "dcqcn"], "a transport"),
        (["--send", "h1=all", "--endpoints", "rdma-read"], "multicasts"),
    ):
        answer = run("simulate", "flat,4", *words)
        assert answer.exit_code == 2, words
        assert text in answer.stderr


def test_roles_are_those_of_simulated_messages(tmp_path: Path) -> None:
    own, trace = tmp_path / "roles.yaml", str(tmp_path / "freeze.csv")
    classes = "classes: {request: {sends_before_taking: [reply]}, reply: {}}\n"
    own.write_text(f"{classes}roles: {{clients: [h2, h3, h6], servers: [h1, h4]}}\n")
    plan = ["mesh,3,hosts=2", "--endpoints", str(own)]
    found = values("plan", *plan, "--freeze", "--write-trace", trace)
    assert found["freezes"] is True
    assert {line.split(",")[2] for line in Path(trace).read_text().split()[1:]} == {"h1", "h4"}
    assert values("simulate", *plan, "--turns", "--trace", trace)["deadlock"] is True
    own.write_text(f"{classes}roles: {{clients: [h2, h3, h6], servers: [h1]}}\n")
    assert values("plan", *plan)["safe"] is True
    refused = run("simulate", *plan, "--turns", "--trace", trace)
    assert refused.exit_code == 2
    assert "h2 sends to h4, and roles let only clients send" in refused.stderr
    refused = run("check", str(FILES), "--endpoints", str(own))
    assert "roles are of hosts of plans and of rules of ours" in refused.stderr


def test_another_core_changes_nothing() -> None:
    words = ["simulate", "fattree2,4", "--pattern", "uniform", "--load", "0.9"]
    one, two = (
        run(*words, "--endpoints", "rdma-read", "--cores", cores, "--json") for cores in "12"
    )
    assert "simulated on one core: end points" in two.stderr
    assert json.loads(one.stdout)["result_sha256"] == json.loads(two.stdout)["result_sha256"]
