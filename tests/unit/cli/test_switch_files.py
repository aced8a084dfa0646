"""``--switch`` and ``--write-switch``: settings of switches in a file, on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from knotless.base import switch_settings
from knotless.cli.main import main
from tests.support.changed_fabrics import Config, changed

POOL = """
lossless: [0]
pools:
  shared: {side: ingress, bytes: 100000, headroom_bytes: 100000}
ingress:
  - {priorities: [0], pool: shared, reserved_bytes: %d, alpha: 1, headroom_bytes: %d}
"""


def run(*arguments: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, list(arguments), prog_name="knotless")


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("net") / "rules"
    assert run("flows", "mesh,2,2", "--out", str(folder)).exit_code == 0
    return str(folder)


def settings(folder: Path, reserved: int, headroom: int) -> str:
    path = folder / "switch.yaml"
    path.write_text(POOL % (reserved, headroom))
    return str(path)


@pytest.mark.parametrize(
    ("reserved", "headroom", "status", "answer"),
    [
        (1522, 9000, 0, "cannot deadlock under PFC"),
        (1522, 100, 1, "cannot deadlock under PFC"),
        (1521, 9000, 1, "CAN DEADLOCK under PFC"),
    ],
)
def test_plan_and_check_judge_the_buffers_of_a_file(
    reserved: int, headroom: int, status: int, answer: str, tmp_path: Path, rules: str
) -> None:
    file = settings(tmp_path, reserved, headroom)
    for what in (("plan", "mesh,2,2"), ("check", rules)):
        arguments = (*what, "--flow-control", "pfc", "--switch", file)
        done = run(*arguments)
        assert done.exit_code == status, done.stdout
        assert answer in done.stdout
        assert ("s1:2/0 -> pool shared of s2 -> " in done.stdout) is (reserved < 1522)
        assert ("headroom_bytes 100 of the ingress buffer" in done.stdout) is (headroom == 100)
        waits = "waits at s1:2/0 for room in pool shared of s2" in done.stdout
        assert waits is (reserved < 1522)
        values = json.loads(run(*arguments, "--json").stdout)
        assert values["acyclic"] is (reserved == 1522)
        assert len(values["losses"]) == (headroom == 100)


def test_check_says_that_frames_can_be_lost_and_what_it_assumes(tmp_path: Path, rules: str) -> None:
    file = settings(tmp_path, 1522, 100)
    lines = run("check", rules, "--flow-control", "pfc", "--switch", file).stdout.splitlines()
    assert lines[0].endswith(
        "cannot deadlock under PFC, all is delivered, lossless packets can be lost"
    )
    assert lines[-1].startswith("  assumed: switches have the buffers that the file describes")
    last = run("check", rules).stdout.splitlines()[-1]
    assert last.startswith("  assumed: each lossless priority")


def test_a_cycle_through_pools_is_drawn(tmp_path: Path, rules: str) -> None:
    file, picture = settings(tmp_path, 0, 9000), tmp_path / "cycle.svg"
    done = run("check", rules, "--flow-control", "pfc", "--switch", file, "--draw", str(picture))
    assert done.exit_code == 1
    assert picture.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("reserved", "headroom", "says"),
    [
        (1522, 9000, None),
        (1522, 100, "headroom_bytes 100 of the ingress buffer, but its link needs"),
        (0, 9000, "ingress buffers wait for room in pool shared of s2 and 1 more"),
    ],
)
def test_advise_names_the_mistakes_of_buffers(
    reserved: int, headroom: int, says: str | None, tmp_path: Path
) -> None:
    file = settings(tmp_path, reserved, headroom)
    arguments = ("advise", "mesh,2,2", "--engine", "dor,updown", "--flow-control", "pfc")
    done = run(*arguments, "--switch", file)
    assert done.exit_code == (says is not None)
    lines = [line for line in done.stdout.splitlines() if line.startswith("  buffers: ")]
    assert len(lines) == (says is not None)
    assert all(says and says in line for line in lines)
    values = json.loads(run(*arguments, "--switch", file, "--json").stdout)
    assert bool(values["buffers"]["losses"]) is (headroom == 100)
    assert bool(values["buffers"]["cycle"]) is (reserved == 0)
    assert "buffers" not in json.loads(run(*arguments, "--json").stdout)


def buffers(config: Config) -> None:
    """Give a switch pools, so that all of its settings are known."""
    config["BUFFER_POOL"] = {"in": {"type": "ingress", "size": "9000000", "xoff": "500000"}}


def test_settings_of_sonic_switches_are_written_for_plans(tmp_path: Path) -> None:
    folder = changed(tmp_path / "net", "control-safe", buffers)
    file = tmp_path / "switch.yaml"
    done = run("check", str(folder), "--write-switch", str(file))
    assert done.exit_code == 0
    assert done.stderr.splitlines()[0] == f"settings of r0, r1, r2 written to {file}"
    written = switch_settings.read(file)
    (group,) = written.ingress or ()
    assert (group.priorities, group.pool, group.headroom_bytes) == ((3, 4), "in", 66_560)
    content: dict[str, Any] = yaml.safe_load(file.read_text())
    assert "switches" not in content, "all switches have the same settings"
    del content["ports"]
    file.write_text(yaml.safe_dump(content))
    assert run("plan", "ring,3", "--flow-control", "pfc", "--switch", str(file)).exit_code == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"BUFFER_POOL": {"in": {"type": "ingress", "size": "9000000", "xoff": "50000"}}},
            "pool in: headroom_bytes 50000 are enough for 3 of its 4 lossless",
        ),
        (
            {
                "BUFFER_POOL": {
                    "in": {"type": "ingress", "size": "9000000"},
                    "out": {"type": "egress", "size": "1000000"},
                },
                "BUFFER_PROFILE": {"queue": {"pool": "out", "size": "0", "static_th": "1000000"}},
                "BUFFER_QUEUE": {"Ethernet0|3-4": {"profile": "queue"}},
            },
            "an egress queue holds at most 1000000 bytes (pool out, limit_bytes 1000000)",
        ),
        (
            {
                "QUEUE": {"Ethernet0|3": {"wred_profile": "drops"}},
                "WRED_PROFILE": {"drops": {"ecn": "ecn_none", "wred_green_enable": "true"}},
            },
            "r0:Ethernet0: queue 3 is lossless, but WRED_PROFILE|drops drops its packets",
        ),
        (
            {"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "4"}}},
            "has priority 3 lossless, which r0:Ethernet0 neither pauses nor obeys",
        ),
    ],
)
def test_mistakes_in_tables_of_sonic_lose_packets(
    change: Config, says: str, tmp_path: Path
) -> None:
    def config(tables: Config) -> None:
        for table, rows in change.items():
            for key, fields in rows.items():
                tables.setdefault(table, {}).setdefault(key, {}).update(fields)

    done = run("check", str(changed(tmp_path, "control-safe", config, routers=("r0",))), "--json")
    values = json.loads(done.stdout)
    assert (done.exit_code, values["acyclic"]) == (1, True)
    assert any(says in line for line in values["losses"]), values["losses"]
    assert {*values["losses"]} <= {*values["problems"]}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("check", "FABRIC", "--switch", "FILE"), "has the settings of its switches itself"),
        (("check", "RULES", "--write-switch", "x.yaml"), "--write-switch is for the files of real"),
        (("check", "RULES", "--switch", "none.yaml"), "none.yaml"),
        (
            ("plan", "mesh,2,2", "--engine", "all", "--compare", "--switch", "FILE"),
            "about one plan",
        ),
        (
            ("plan", "mesh,2,1", "--switch", "PORTS"),
            "ports.9: switches of mesh,2,1 have ports 1, 2",
        ),
    ],
)
def test_what_cannot_be_judged_is_refused_in_one_line(
    arguments: tuple[str, ...], says: str, tmp_path: Path, rules: str
) -> None:
    (tmp_path / "ports.yaml").write_text("ports: {'9': {lossless: []}}")
    places = {
        "FABRIC": str(changed(tmp_path / "net", "control-safe")),
        "RULES": rules,
        "FILE": settings(tmp_path, 1522, 9000),
        "PORTS": str(tmp_path / "ports.yaml"),
    }
    done = run(*(places.get(argument, argument) for argument in arguments))
    assert (done.exit_code, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr


def test_fabrics_without_tables_have_nothing_to_write(tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "data" / "fabrics" / "clos-frr"
    done = run("check", str(folder), "--write-switch", str(tmp_path / "switch.yaml"))
    assert done.exit_code == 2
    assert "no switch of clos-frr has tables of SONiC with settings" in done.stderr
    assert not (tmp_path / "switch.yaml").exists()
