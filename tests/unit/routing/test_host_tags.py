"""Hosts that tag their own frames: which frames switches admit, and the verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from knotless.base.errors import RuleError
from knotless.cli.main import main
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.plan import make_plan
from knotless.routing.vlans.host_tags import EVERYTHING_ELSE, from_text, to_text
from knotless.topologies import load
from knotless.topologies.numbering import mac_value
from knotless.verification.check import check
from knotless.verification.checked_plan import CheckedPlan
from tests.support.one_switch import Frame, Pipeline

SPEC, ENGINE = "torus,4,4,hosts=4", "minimal"


def run(*arguments: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, list(arguments))


def test_a_host_may_use_just_the_vlan_that_is_planned_for_the_destination() -> None:
    plan = make_plan(load(SPEC), ENGINE, tagging="host")
    tags = plan.host_tags()
    assert tags is not None
    rules = compile_rules(plan)
    several = 0
    for host in plan.fabric.hosts[:8]:
        pipeline = Pipeline(host.switch, rules[host.switch])
        own = tags[host.name]
        several += len(own) > 1
        for target in plan.fabric.hosts:
            if target.switch == host.switch:
                continue
            right = own.get(target.mac, own[EVERYTHING_ELSE])
            for vlan in range(1, 2 + plan.vlan_count + 1):
                frame = Frame(mac_value(target.mac), mac_value(host.mac), 0x0800, (7 << 13 | vlan,))
                out = pipeline.outputs(host.port, frame)
                assert len(out) == (vlan == right)
                # Whatever the host's priority, the frame gets that of the path.
                assert all(copy.priority == 0 for _, copy in out)
            untagged = Frame(mac_value(target.mac), mac_value(host.mac), 0x0800)
            forged = Frame(mac_value(target.mac), mac_value(target.mac), 0x0800, (right,))
            twice = untagged._replace(tags=(right, right))
            assert pipeline.outputs(host.port, untagged) == ()
            assert pipeline.outputs(host.port, twice) == ()
            assert pipeline.outputs(host.port, forged) == ()
    assert several


@pytest.mark.parametrize("engine", ["minimal", "updown", "dl", "lash"])
def test_everything_arrives_with_the_right_tags_and_not_without(engine: str) -> None:
    plan = make_plan(load("random,12,degree=3,hosts=2,seed=3"), engine, tagging="host")
    rules = compile_rules(plan)
    verdict = check(plan.fabric, rules, tags=plan.host_tags())
    assert (verdict.undelivered, verdict.broadcasts_undelivered) == (0, 0)
    assert verdict.acyclic == (CheckedPlan(plan).cycle == [])
    assert check(plan.fabric, rules).undelivered == verdict.pairs


def test_flows_and_check_by_files(tmp_path: Path) -> None:
    folder = str(tmp_path)
    done = run("flows", SPEC, "--engine", ENGINE, "--tagging", "host", "--out", folder, "--json")
    assert (done.exit_code, json.loads(done.stdout)["vlans"] > 1) == (0, True)
    assert json.loads(run("check", folder, "--json").stdout)["undelivered"] == 0
    tags = json.loads((tmp_path / "tags.json").read_text())
    host = next(host for host, own in tags.items() if len(own) > 1)
    del tags[host][next(mac for mac in tags[host] if mac != EVERYTHING_ELSE)]
    (tmp_path / "tags.json").write_text(json.dumps(tags))
    answer = run("check", folder, "--json")
    assert (answer.exit_code, json.loads(answer.stdout)["undelivered"]) == (1, 1)
    assert run("flows", SPEC, "--engine", ENGINE, "--out", folder).exit_code == 0
    assert not (tmp_path / "tags.json").exists()


def test_tags_survive_their_file() -> None:
    plan = make_plan(load(SPEC), ENGINE, tagging="host")
    tags = plan.host_tags()
    assert tags is not None
    assert from_text(plan.fabric, to_text(tags)) == tags
    assert make_plan(load(SPEC), ENGINE).host_tags() is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[]", "one object for each host"),
        ('{"h1": {}}', "one object for each host"),
        ('{"h1": {}, "h2": {"default": 2}, "h3": {"default": 2}}', "host h1: .* 'default'"),
        ('{"h1": {"default": 0}, "h2": {"default": 2}, "h3": {"default": 2}}', "1 to 4094"),
        ('{"h1": {"default": true}, "h2": {"default": 2}, "h3": {"default": 2}}', "1 to 4094"),
    ],
)
def test_invalid_files_are_reported(text: str, says: str) -> None:
    with pytest.raises(RuleError, match=says):
        from_text(load("flat,3"), text)


def test_simulated_frames_take_the_same_paths_with_both_kinds_of_tagging() -> None:
    def delivered(tagging: str) -> tuple[int, int]:
        options = ["--engine", ENGINE, "--tagging", tagging, "--pattern", "complement"]
        done = run("simulate", "clos,3,hosts=2", *options, "--json")
        answer = json.loads(done.stdout)
        return answer["packet_hops"], answer["packets"]

    assert delivered("host") == delivered("switch")
