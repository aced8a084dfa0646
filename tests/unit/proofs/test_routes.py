"""Fabrics of routers: what ``knotless-verify`` accepts and refuses, and what it says then."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.classical_deadlocks import bounce, default_ring, routing_loop
from tests.support.linux_dumps import write_linux
from tests.support.proof_trials import with_files_of
from tests.support.proofs import BUILT, Judgement, file_lines, judge, run
from tests.support.route_trials import OUTSIDE, proven
from tests.support.router_dumps import RouterNet
from tests.support.router_nets import clos, leaf_spine, with_uplinks

pytestmark = BUILT


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, str]:
    return proven(leaf_spine(3, 2).write(tmp_path / "net"), tmp_path / "proof")


def edited(folder: Path, name: str, old: str, new: str) -> None:
    """Replace the first occurrence of a text in a file."""
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))


def judged(folder: Path, proof: str) -> Judgement:
    """Judge the files as they are now with the evidence of a proof."""
    return judge(folder, with_files_of(proof, folder))


def two_exits() -> RouterNet:
    """Return a fabric with a default route, which leaves it by either of its spines."""
    net = leaf_spine(2, 2)
    with_uplinks(net, ["spine0", "spine1"])
    for spine in ("spine0", "spine1"):
        net.routes[spine]["0.0.0.0/0"] = [("203.0.113.1", "Ethernet380")]
    for leaf in ("leaf0", "leaf1"):
        both = [("169.254.0.1", "Ethernet0"), ("169.254.0.2", "Ethernet4")]
        net.routes[leaf]["0.0.0.0/0"] = both
    return net


@pytest.mark.parametrize("form", ["sonic", "frr", "text", "linux"])
@pytest.mark.parametrize(
    ("net", "judged"),
    [
        (leaf_spine(3, 2), "5 routers, 3 hosts (3 with an address), 15 routes in 6 files"),
        (clos(2, 2, 2, 2), "12 routers, 4 hosts (4 with an address), 48 routes in 13 files"),
    ],
    ids=["leaf-spine", "clos"],
)
def test_safe_fabrics_are_accepted_with_the_theorem_and_what_it_assumes(
    tmp_path: Path, form: str, net: RouterNet, judged: str
) -> None:
    is_linux = form == "linux"
    source = tmp_path / "net"
    source = write_linux(net, source) if is_linux else net.write(source, form)
    judgement = judge(*proven(source, tmp_path / "proof"))
    assert judgement.accepted, judgement.text
    condition = "PAUSE" if is_linux else "PFC, in each of the priorities 3 and 4"
    assert judgement.text.startswith(f"accepted: the fabric cannot deadlock under {condition}\n")
    assert "check_sound" in judgement.text
    assert f"\nJudged: {judged}" in judgement.text
    assert ("packets keep their priority" in judgement.text) != is_linux


def test_what_leaves_the_fabric_by_either_of_two_routers_is_lost_to_nobody(tmp_path: Path) -> None:
    net = two_exits()
    folder, proof = proven(net.write(tmp_path / "net"), tmp_path / "proof", [OUTSIDE])
    assert "0.0.0.0/0 via Ethernet380\n" in (folder / "spine0.routes").read_text()
    judgement = judge(folder, proof)
    assert judgement.accepted, judgement.text
    assert "4 hosts (2 with an address)" in judgement.text
    # A default route of a leaf back to where it came from, which devices outside can reach.
    edited(folder, "spine0.routes", "0.0.0.0/0 via Ethernet380", "0.0.0.0/0 via Ethernet0")
    judgement = judged(folder, proof)
    assert judgement.status == 1
    assert "can wait for" in judgement.text


@pytest.mark.parametrize("net", [bounce, routing_loop, lambda: default_ring(5)])
def test_a_cycle_is_replayed_from_the_routes(tmp_path: Path, net: Callable[[], RouterNet]) -> None:
    folder, proof = proven(net().write(tmp_path / "net"), tmp_path / "proof")
    judgement = judge(folder, proof)
    assert judgement.replayed, judgement.text
    assert judgement.text.startswith(
        "checked, not proven: under PFC, in priority 3, frames can wait for each other in a cycle"
    )
    wait = re.search(r"a frame from (\S+) to ([\d.]+) by \1 (\S+) ", judgement.text)
    assert wait is not None
    assert ipaddress.IPv4Address(wait[2])
    line = next(line for line in proof.splitlines() if line.startswith("via "))
    other = proof.replace(line, " ".join([*line.split()[:-1], line.split()[2]]), 1)
    assert judge(folder, other).status == 1
    assert "rules do not send frames of" in judge(folder, other).text
    for wrong, reason in (("/5 ", "priority 5 does not pause"), ("/4 ", "waits have several")):
        waits = [text for text in proof.splitlines() if text.startswith("wait ")]
        replaced = waits if wrong == "/5 " else waits[:1]
        changed = proof
        for text in replaced:
            changed = changed.replace(text, text.replace("/3 ", wrong))
        assert reason in judge(folder, changed).text


def test_the_longest_prefix_counts_wherever_it_stands(written: tuple[Path, str]) -> None:
    folder, proof = written
    name = "spine0.routes"
    edited(folder, name, "10.0.0.0/24", "0.0.0.0/0 via Ethernet8\n10.0.0.0/24")
    lines = (folder / name).read_text().splitlines(keepends=True)
    for ordered in lines, lines[::-1]:
        (folder / name).write_text("".join(ordered))
        judgement = judged(folder, proof)
        # What is for nobody ends at leaf2, which has no default route.
        assert judgement.accepted, judgement.text
    edited(folder, name, "0.0.0.0/0", "10.0.0.0/28")
    judgement = judged(folder, proof)
    assert judgement.status == 1
    assert judgement.text.startswith(
        "knotless-verify: refused: frames to 10.0.0.0/24 from leaf1-Vlan10: leaf2.routes:1: a frame"
        " in spine0:Ethernet8/3 (rank 2) can wait for leaf2:Ethernet0/3 (rank 1)"
    )


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("leaf0.routes", "via Vlan10", "local", "reaches nobody, but is for leaf0-Vlan10 (leaf0"),
        ("leaf0.routes", "via Vlan10", "drop", "leaf0.routes:1: dropped"),
        ("leaf0.routes", "10.0.0.0/24 via Vlan10\n", "", "leaf0: no route"),
        ("spine0.routes", "via Ethernet0", "via Ethernet4", "frames to 10.0.0.0/24 from"),
        ("leaf1.routes", "10.0.0.0/24", "10.0.1.0/24", "leaf1: no route"),
    ],
)
def test_a_refusal_names_the_addresses_the_router_and_the_route(
    written: tuple[Path, str], name: str, old: str, new: str, reason: str
) -> None:
    folder, proof = written
    edited(folder, name, old, new)
    judgement = judged(folder, proof)
    assert judgement.status == 1
    assert reason in judgement.text


def test_what_comes_from_its_own_link_has_arrived_or_comes_back(tmp_path: Path) -> None:
    """A route back to where a packet came from is a wait of both channels of the link."""
    net = leaf_spine(2, 1)
    for router in ("leaf0", "spine0"):
        net.routes[router]["10.200.0.0/30"] = [("", "Ethernet0")]
    folder, proof = proven(net.write(tmp_path / "net"), tmp_path / "proof")
    assert "10.200.0.0/30 link Ethernet0\n" in (folder / "leaf0.routes").read_text()
    assert judge(folder, proof).accepted
    edited(folder, "leaf0.routes", "link", "via")
    assert judged(folder, proof).accepted
    edited(folder, "spine0.routes", "link", "via")
    judgement = judged(folder, proof)
    assert judgement.status == 1
    assert "can wait for" in judgement.text


def test_classes_have_to_be_all_of_ipv4_and_nothing_else(written: tuple[Path, str]) -> None:
    folder, proof = written
    first, *_, last = (line for line in proof.splitlines() if line.startswith("class "))
    assert first.startswith("class 0.0.0.0/0 but ")
    refused = "knotless-verify: refused: the classes are not those of all addresses of IPv4\n"
    for old, new in (
        (f"{first}\n", ""),
        (f"{last}\n", ""),
        ("class 0.0.0.0/0", "class 0.0.0.0/1"),
        ("class 0.0.0.0/0", "class 00:00:00:00:00:00/00:00:00:00:00:00"),
        ("class 0.0.0.0/0", "class 01:00:00:00:00:00/ff:ff:00:00:00:00"),
        (f"{last}\n", f"{last}\nclass 01:00:00:00:00:00/ff:ff:00:00:00:00\n"),
    ):
        assert judge(folder, proof.replace(old, new)) == (1, refused)
    assert judge(folder, f"{proof}{last}\n").accepted


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("flow-control pfc", "flow-control none", "flow control none is not covered"),
        ("flow-control pfc", "flow-control credits", "flow control credits is not covered"),
        ("flow-control pfc", "flow-control pfc\ngroup 3-4", "none share a queue"),
    ],
)
def test_flow_control(written: tuple[Path, str], old: str, new: str, reason: str) -> None:
    folder, proof = written
    judgement = judge(folder, proof.replace(old, new))
    assert judgement.status == 1
    assert reason in judgement.text


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        ("10.9.0.0/16", "not a route"),
        ("10.9.0.0/16 via", "no port"),
        ("10.9.0.0/16 via  Ethernet0", 'it has no port "" in fabric.json'),
        ("10.9.0.0/16 via Ethernet0 ", 'it has no port "" in fabric.json'),
        ("10.9.0.0/16 via Ethernet0 Ethernet0", "a port occurs twice"),
        ("10.9.0.0/16 via Ethernet99", 'it has no port "Ethernet99" in fabric.json'),
        ("10.9.0.0/16 to Ethernet0", "not a route"),
        ("10.9.0.0/16 local Ethernet0", "not a route"),
        ("10.9.0.0 local", "not a prefix"),
        ("10.9.0.1/16 local", "bits behind the prefix are set"),
        ("10.9.0.0/33 local", "not a number up to 32"),
        ("10.9.0.0/016 local", "not a number up to 32"),
        ("10.9.0/16 local", "not an address"),
        ("10.9.0.256/32 local", "not a number up to 255"),
        ("10.9.00.0/16 local", "not a number up to 255"),
        ("10.0x9.0.0/16 local", "not a number up to 255"),
        ("10.-9.0.0/16 local", "not a number up to 255"),
        ("2001:db8::/32 local", "not an address"),
        ("10.1.0.0/24 drop", "a prefix occurs twice"),
    ],
)
def test_lines_that_are_no_routes_are_not_read(
    written: tuple[Path, str], route: str, reason: str
) -> None:
    folder, proof = written
    with (folder / "leaf0.routes").open("a") as file:
        file.write(f"{route}\n")
    judgement = judged(folder, proof)
    assert judgement.status == 2
    assert judgement.text.startswith("knotless-verify: leaf0.routes")
    assert reason in judgement.text


@pytest.mark.parametrize(
    ("kind", "values", "reason"),
    [
        ("links", {"loss": 0.01}, 'unknown key "loss"'),
        ("links", {"a": "leaf9"}, "router leaf9 is missing"),
        ("links", {"a_port": "Vlan10"}, "port leaf0:Vlan10 occurs twice"),
        ("links", {"a_port": ""}, "the name"),
        ("links", {"a_port": "Ethernet 0"}, "the name"),
        ("links", {"a_port": 1}, "a_port is no text"),
        ("hosts", {"address": "10.1.0.2"}, "two hosts have one address"),
        ("hosts", {"address": "10.1.0"}, "not an address"),
        ("hosts", {"name": "leaf1-Vlan10"}, "channel leaf1-Vlan10 occurs twice"),
        ("hosts", {"mac": "02:00:00:00:00:01"}, 'unknown key "mac"'),
    ],
)
def test_fabrics_that_are_none_are_not_read(
    written: tuple[Path, str], kind: str, values: dict[str, Any], reason: str
) -> None:
    folder, proof = written
    fabric = json.loads((folder / "fabric.json").read_text())
    fabric[kind][0] |= values
    (folder / "fabric.json").write_text(json.dumps(fabric))
    judgement = judged(folder, proof)
    assert judgement.status == 2
    assert reason in judgement.text


def test_steps_and_failures_are_not_covered(written: tuple[Path, str]) -> None:
    folder, proof = written
    refused = "knotless-verify: refused: of routers only delivery without failures is covered\n"
    for other in (
        proof.replace("claim safe", "claim deadlock-free"),
        f"{proof}failure link leaf0:Ethernet0\n",
    ):
        assert judge(folder, other) == (1, refused)
    head, claim, evidence = proof.partition("claim safe\n")
    both = folder.parent / "both"
    both.write_text("\n".join([f"{head}then", *file_lines(folder), f"{claim}{evidence}"]))
    assert run(folder, folder, both) == (
        1,
        "knotless-verify: refused: a proof of routers is of one folder\n",
    )


def test_no_file_may_be_missing_or_of_another_kind(written: tuple[Path, str]) -> None:
    folder, proof = written
    text = (folder / "leaf0.routes").read_text()
    (folder / "leaf0.routes").unlink()
    assert "leaf0.routes is missing: what leaf0 holds is not known" in judged(folder, proof).text
    (folder / "leaf0.routes").write_text(text)
    (folder / "leaf9.routes").write_text("")
    assert "leaf9.routes: fabric.json has no such router" in judged(folder, proof).text
    (folder / "leaf9.routes").unlink()
    (folder / "leaf0.flows").write_text("")
    assert "leaf0.flows: fabric.json has no such router" in judged(folder, proof).text
    assert "leaf0.flows is not a file of this proof" in judge(folder, proof).text


def test_what_is_read_is_printed(written: tuple[Path, str]) -> None:
    folder, _ = written
    lines = run("--print", folder).text.splitlines()
    assert "channel leaf0:Ethernet0 to spine0:Ethernet0" in lines
    assert "host leaf1-Vlan10 to leaf1:Vlan10 10.1.0.2" in lines
    assert "route leaf0 10.1.0.0/24 to Ethernet4" in lines
    edited(folder, "leaf0.routes", "via Vlan10", "link Ethernet0")
    lines = run("--print", folder).text.splitlines()
    assert "route leaf0 10.0.0.0/24 from Ethernet0 ends" in lines
    assert "route leaf0 10.0.0.0/24 to Ethernet0" in lines
