"""``knotless check --proof`` and ``knotless verify``: files, exit statuses, and what is refused."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from knotless.cli.commands import _proven
from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.topologies import load
from tests.support import REPOSITORY
from tests.support.classical_deadlocks import bounce
from tests.support.infiniband_dumps import of_plan
from tests.support.proofs import BUILT
from tests.support.router_dumps import RouterNet
from tests.support.router_nets import leaf_spine

SAFE = ("ring,4", "--engine", "updown")
CYCLIC = ("ring,4", "--engine", "dor", "--vcs", "1", "--select", "low-port")
HASH = re.compile(r"move:\S+?\[24\.\.47\],bundle_load\(\S+?members:[0-9,]+\),move:[^,]+,")
OTHERS = REPOSITORY / "tests" / "data" / "fabrics"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: str | Path) -> Result:
    done = CliRunner(mix_stderr=False).invoke(main, [*map(str, words)], prog_name="knotless")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def flows(*words: str) -> None:
    assert call("flows", *words, "--out", "rules").exit_code == 0


@pytest.mark.parametrize(("plan", "status"), [(SAFE, 0), (CYCLIC, 1)])
def test_a_check_with_a_proof_answers_as_one_without(plan: tuple[str, ...], status: int) -> None:
    flows(*plan)
    plain = call("check", "rules")
    done = call("check", "rules", "--proof", "p")
    assert (done.exit_code, done.stderr) == (status, "")
    assert done.stdout == f"{plain.stdout}  proof: p\n"
    values = json.loads(call("check", "rules", "--proof", "p", "--json").stdout)
    assert (values["proof"], values["proof_rules"]) == ("p", "rules")
    assert {path.name for path in Path().iterdir()} == {"rules", "p"}


@BUILT
@pytest.mark.parametrize(
    "plan", [("--source-check", "arp"), ("--source-check", "ip"), ("--tagging", "host")]
)
def test_of_rules_that_ask_more_of_frames_delivery_is_not_claimed(plan: tuple[str, ...]) -> None:
    flows(*SAFE, *plan)
    done = call("check", "rules", "--proof", "p")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "  the proof does not say that frames arrive\n" in done.stdout
    assert "not covered" not in done.stdout
    verified = call("verify", "rules", "p")
    assert verified.exit_code == 0
    assert "; that frames arrive is not claimed\n" in verified.stdout
    assert "with any tags,\nfrom any source, to any of the" in verified.stdout


@BUILT
def test_a_cycle_of_hosts_that_tag_is_replayed() -> None:
    flows("ring,4", "--engine", "minimal", "--tagging", "host")
    assert call("check", "rules", "--proof", "p").exit_code == 1
    verified = call("verify", "rules", "p")
    assert verified.exit_code == 1
    assert verified.stdout.startswith("checked, not proven: under PAUSE, frames can wait")
    assert " (tagged: VLAN 2, priority 0) by h1 " in verified.stdout


def test_frames_that_a_proof_is_not_about_are_named() -> None:
    flows(*SAFE)
    file = Path("rules/s2.flows")
    file.write_text(file.read_text().replace("vlan_vid=0x0/0xfff", "vlan_vid=0x1007"))
    file.write_text(file.read_text().replace("eth_src=02:00:00:00:02:01,", ""))
    done = call("check", "rules", "--proof", "p")
    assert done.exit_code == 2
    file.write_text(
        file.read_text()
        + "cookie=0x6b6e6f74,table=0,priority=190,in_port=1,vlan_vid=0x0/0xfff actions="
        "push_vlan:0x8100,set_field:4098->vlan_vid,set_field:0->vlan_pcp,goto_table:1\n"
    )
    done = call("check", "rules", "--proof", "p")
    assert (done.exit_code, done.stderr) == (0, "")
    lost = "  not covered: frames that hosts send with tags (see s2) or from addresses of others"
    assert f"{lost} (see s2)\n" in done.stdout


@BUILT
def test_multipath_by_a_hash_is_proven() -> None:
    flows("fattree2,4", "--multipath", "ecmp")
    assert call("check", "rules", "--proof", "p").exit_code == 0
    assert call("verify", "rules", "p").exit_code == 0


@BUILT
@pytest.mark.parametrize(("last", "status"), [("output:6", 0), ("output:1", 2)])
def test_a_group_of_type_select_is_proven(last: str, status: int) -> None:
    flows("clos,4,hosts=2", "--multipath", "ecmp")
    ports = ("output:3", "output:4", "output:5", last)
    to_group = "write_metadata:0x63,"
    rules, choices = HASH.subn(to_group, Path("rules/s1.flows").read_text())
    assert choices > 0
    rules += "table=3,priority=100,metadata=0x63 actions=group:50\n"
    Path("rules/s1.flows").write_text(rules)
    buckets = ",".join(f"bucket=actions={port}" for port in ports)
    with Path("rules/s1.groups").open("a") as file:
        file.write(f"group_id=50,type=select,{buckets}\n")
    done = call("check", "rules", "--proof", "p")
    assert (done.exit_code, Path("p").exists()) == (status, status == 0), done.stderr
    if status == 0:
        assert call("verify", "rules", "p").exit_code == 0


def test_another_hash_is_not_covered() -> None:
    flows("fattree2,4", "--multipath", "ecmp")
    file = Path("rules/s1.flows")
    file.write_text(file.read_text().replace("hrw", "active_backup"))
    done = call("check", "rules", "--proof", "p")
    assert (done.exit_code, done.stdout) == (2, "")


@BUILT
def test_a_subnet_is_proven() -> None:
    made = of_plan(make_plan(load("ring,4"), "updown"))
    assert made is not None
    made.write(Path("my-subnet"))
    done = call("check", "my-subnet", "--proof", "subnet.proof")
    assert (done.exit_code, done.stderr) == (0, "")
    verified = call("verify", "subnet.proof.rules", "subnet.proof")
    assert verified.exit_code == 0
    assert verified.stdout.startswith("accepted: the subnet cannot deadlock under credits\n")


@pytest.mark.parametrize("fabric", ["adaptive-ring", "sharp-nodes", "ovs-table-miss"])
def test_fabrics_of_others_that_proofs_do_not_cover(fabric: str) -> None:
    done = call("check", OTHERS / fabric, "--proof", "p")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("knotless: proofs do not cover ")
    assert not Path("p").exists()


@pytest.mark.parametrize(
    "option", [("--pair", "h1", "h3"), ("--failures", "1"), ("--explain", "s1:2")]
)
def test_options_that_ask_for_more_than_a_verdict_are_refused(option: tuple[str, ...]) -> None:
    flows(*SAFE)
    done = call("check", "rules", "--proof", "p", *option)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"knotless: --proof is of a verdict on rules or routes alone, not with {option[0]}\n"
    )


def as_switches_print(text: str) -> str:
    """Return rules with counters, as ``ovs-ofctl dump-flows`` prints them."""
    counted = text.replace(",table=", ", duration=1.5s, table=")
    return counted.replace(",priority=", ", n_packets=7, n_bytes=9, priority=")


@BUILT
@pytest.mark.parametrize(("plan", "status"), [(SAFE, 0), (CYCLIC, 1)])
def test_verify_accepts_what_check_has_written(plan: tuple[str, ...], status: int) -> None:
    flows(*plan)
    assert call("check", "rules", "--proof", "p").exit_code == status
    done = call("verify", "rules", "p")
    begin = "checked, not proven: " if status else "accepted: the fabric cannot deadlock"
    assert (done.exit_code, done.stderr, done.stdout.startswith(begin)) == (status, "", True)


def verify_commands(text: str) -> list[list[str]]:
    """Return the words behind ``knotless`` of each command that a change names."""
    return [line.split(" knotless ")[1].split() for line in text.splitlines() if "proof of" in line]


@BUILT
def test_each_step_of_a_change_has_rules_and_a_proof() -> None:
    plans = ("ring,6", "--from", "dor", "--engine", "dl")
    done = call("change", *plans, "--proofs", "steps")
    assert (done.exit_code, done.stderr) == (0, "")
    assert {path.name for path in Path("steps").iterdir()} == {
        *("0", "1", "2", "3", "1.proof", "2.proof", "3.proof", "certificate.json")
    }
    commands = verify_commands(done.stdout)
    assert commands == [
        ["verify", "steps/0", "steps/1", "steps/1.proof"],
        ["verify", "steps/0", "steps/1", "steps/2", "steps/2.proof"],
        ["verify", "steps/2", "steps/3", "steps/3.proof"],
    ]
    for command in commands:
        done = call(*command)
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.startswith("accepted: the fabric cannot deadlock under PFC, while its")
    values = json.loads(call("change", *plans, "--proofs", "steps", "--json").stdout)
    assert [line.split(":")[0] for line in values["proofs"]] == ["step 1", "step 2", "step 3"]
    # Of a change with fewer steps, no proof of the earlier one is left.
    done = call("change", "ring,6", "--from", "dor", "--engine", "dor", "--proofs", "steps")
    assert done.exit_code == 0
    assert not [*Path("steps").glob("*.proof")]


@BUILT
def test_a_step_that_drops_frames_says_what_its_proof_does_not_claim() -> None:
    plans = ("torus,4,4", "--from", "dor", "--engine", "updown")
    done = call("change", *plans, "--proofs", "steps")
    assert done.exit_code == 0
    lines = [line for line in done.stdout.splitlines() if "; not that frames arrive" in line]
    assert lines
    done = call(*verify_commands(lines[0])[0])
    assert done.exit_code == 0
    assert "; that frames arrive is not claimed" in done.stdout.splitlines()[0]
    assert call("verify", "steps/0", "steps/1", "steps/3.proof").exit_code == 1


@BUILT
def test_a_step_to_rules_that_ask_more_of_frames_claims_no_delivery() -> None:
    options = ("ring,4", "--engine", "updown", "--source-check", "arp")
    done = call("change", *options, "--proofs", "steps")
    assert done.exit_code == 0
    assert "NO PROOF" not in done.stdout
    proofs = [*Path("steps").glob("*.proof")]
    assert proofs
    assert all("\nclaim deadlock-free\n" in proof.read_text() for proof in proofs)


def test_rules_and_proofs_of_steps_are_in_one_folder() -> None:
    done = call("change", "ring,4", "--engine", "updown", "--out", "a", "--proofs", "b")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "knotless: --proofs writes what --out does: give one of them\n"
    assert not [*Path().iterdir()]


@BUILT
def test_failures_that_rules_provide_for_are_proven_as_well() -> None:
    flows("ring,4", "--engine", "updown", "--protection", "fast-failover")
    done = call("check", "rules", "--proof", "p")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "  also proven: 8 failures of a part, which cut 7 pairs of hosts\n" in done.stdout
    done = call("verify", "rules", "p")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].endswith(", nor if one of 8 parts fails")


@BUILT
def test_verify_refuses_other_rules_and_another_fabric() -> None:
    flows(*SAFE)
    call("check", "rules", "--proof", "p")
    file = Path("rules/s1.flows")
    file.write_text(file.read_text().replace("output:2", "output:3"))
    done = call("verify", "rules", "p")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("knotless: refused: s1.flows has changed")
    Path("p").write_text("knotless-proof 1\n")
    done = call("verify", "rules", "p")
    assert (done.exit_code, done.stderr.startswith("knotless: p")) == (2, True)


@BUILT
@pytest.mark.parametrize(("net", "status"), [(leaf_spine(3, 2), 0), (bounce(), 1)])
def test_routes_of_routers_are_written_to_a_folder_for_the_proof(
    net: RouterNet, status: int
) -> None:
    net.write(Path("net"))
    plain = call("check", "net")
    done = call("check", "net", "--proof", "p")
    assert (done.exit_code, done.stderr) == (status, "")
    copied = "  proof: p\n  routes of the proof, as they were read: p.rules\n"
    assert done.stdout == plain.stdout + copied
    values = json.loads(call("check", "net", "--proof", "p", "--json").stdout)
    assert (values["proof"], values["proof_rules"]) == ("p", "p.rules")
    files = sorted(file for file in Path("net").rglob("*") if file.is_file())
    assert json.loads(Path("p.rules/fabric.json").read_text())["read_from"] == [
        {"file": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        for file in files
    ]
    done = call("verify", "p.rules", "p")
    begin = "checked, not proven: " if status else "accepted: the fabric cannot deadlock"
    assert (done.exit_code, done.stderr, done.stdout.startswith(begin)) == (status, "", True)


@BUILT
def test_rules_as_switches_print_them_are_written_again_for_the_proof() -> None:
    flows(*SAFE)
    for file in Path("rules").glob("*.flows"):
        file.write_text(as_switches_print(file.read_text()))
    done = call("check", "rules", "--proof", "p")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.endswith("  rules of the proof, as they were read: p.rules\n")
    assert call("verify", "p.rules", "p").exit_code == 0
    assert call("verify", "rules", "p").exit_code == 1


@BUILT
@pytest.mark.parametrize("fabric", ["ovs-normal", "ovs-one-dump", "ovs-dec-ttl"])
def test_dumps_of_open_vswitch_are_written_as_a_folder_for_the_proof(fabric: str) -> None:
    done = call("check", OTHERS / fabric, "--proof", "p", "--json")
    assert done.exit_code in (0, 1)
    assert json.loads(done.stdout)["proof_rules"] == "p.rules"
    is_cycle = "claim cycle" in Path("p").read_text()
    assert call("verify", "p.rules", "p").exit_code == int(is_cycle)


def test_where_the_program_is_missing_a_line_says_how_it_is_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_proven, "native", tmp_path.joinpath)
    done = call("verify", "rules", "p")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "knotless: knotless-verify is not built: run apt-get install ocaml-nox, then"
        " tools/setup.sh\n"
    )
