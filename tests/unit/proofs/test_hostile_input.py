"""Files that somebody has made to harm: the verifier refuses them in one line."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.numbering import mac_text, mac_value
from knotless.verification.address_classes import Cube
from tests.support.bridge_trials import files_of_bridges
from tests.support.infiniband_dumps import of_plan
from tests.support.proof_trials import with_files_of
from tests.support.proofs import (
    ALL,
    BUILT,
    class_lines,
    files_of_plan,
    judge,
    proof_of,
    run,
    write_rules,
)
from tests.support.route_trials import proven
from tests.support.router_nets import leaf_spine
from tests.support.subnet_trials import proven as proven_subnet

pytestmark = BUILT

RING = files_of_plan("ring,3", engine="updown")
DEEP = 200_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_rules(tmp_path / "rules", RING)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it ends early"),
        ("[" * DEEP, "nested too deeply"),
        ('{"a":' * DEEP, "nested too deeply"),
        ('{"name": "' + "x" * DEEP, "it ends early"),
        ("{} {}", "more text"),
        ('{"switches": [], "switches": []}', "switches occurs twice"),
        ('{"switches": 1, "hosts": [], "links": []}', "switches is no list"),
        ('{"switches": [1], "hosts": [], "links": []}', "no object"),
        ('{"name": "\\ud800"}', "half a character"),
        ('{"name": "\\q"}', "escape"),
        ('{"name": "a\nb"}', "control character"),
        ("\ufeff{}", "more text"),
    ],
    ids=range(12),
)
def test_a_fabric_that_is_none(folder: Path, text: str, reason: str) -> None:
    intact = proof_of(folder)
    (folder / "fabric.json").write_text(text)
    judgement = judge(folder, with_files_of(intact, folder))
    assert judgement.status == 2
    assert judgement.text.startswith("knotless-verify: fabric.json: ")
    assert reason in judgement.text
    assert judgement.text.count("\n") == 1


@pytest.mark.parametrize(
    "proof",
    [
        "",
        "\n",
        "knotless-proof 3",
        "knotless-proof 3\n",
        "knotless-proof 1\nflow-control pfc\nclaim safe\n",
        "knotless-proof 3\nclaim safe\n",
        "knotless-proof 3\nflow-control pfc\nflow-control pfc\nclaim safe\n",
        "knotless-proof 3\nflow-control  pfc\nclaim safe\n",
        "knotless-proof 3\nflow-control pfc \nclaim safe\n",
        "knotless-proof 3\r\nflow-control pfc\r\nclaim safe\r\n",
        "knotless-proof 3\nflow-control pfc\ngroup 0-9\nclaim safe\n",
        "knotless-proof 3\nflow-control pfc\ngroup 0-2\ngroup 2-3\nclaim safe\n",
        "knotless-proof 3\nflow-control pfc\nclaim safe\nrank s1:2/8 1\n",
        "knotless-proof 3\nflow-control pfc\nclaim safe\nrank s1:2/0 -1\n",
        "knotless-proof 3\nflow-control pfc\nclaim safe\nrank s1:2/0 99999999999999999999\n",
        "knotless-proof 3\nflow-control pfc\nclaim safe\nclass 02:00:00:00:00:00/0\n",
        "knotless-proof 3\nflow-control pfc\nclaim safe\nclass 00:00:00:00:00:00 but\n",
        "knotless-proof 3\nflow-control pfc\nclaim cycle\n",
        "knotless-proof 3\nflow-control pfc\nclaim cycle\nvia h1 s1:2\n",
        "knotless-proof 3\nflow-control pfc\nclaim proven\n",
        "knotless-proof 3\nflow-control pf\u00e7\nclaim safe\n",
        "knotless-proof 3\nflow-control pfc\nclaim safe\n" + "class " * DEEP + "\n",
    ],
    ids=range(22),
)
def test_a_proof_that_is_none(folder: Path, proof: str) -> None:
    judgement = judge(folder, proof)
    assert judgement.status == 2
    assert judgement.text.count("\n") == 1


def test_messages_have_no_control_characters_and_an_end(folder: Path) -> None:
    head = "knotless-proof 3\nflow-control pause\nclaim safe\n"
    (folder / "s1.flows").write_bytes(b"\x1b[2J\x07 \x7f " + b"x" * DEEP)
    judgement = judge(folder, with_files_of(head, folder))
    assert judgement.status == 2
    assert judgement.text.startswith("knotless-verify: s1.flows:1: ")
    assert all(character >= " " for character in judgement.text[:-1])
    assert len(judgement.text) < 1000


@pytest.mark.parametrize("name", ["s9:1/0", "h9/0", "s1:9/0", "s1/0", ":/0", "/0"])
def test_a_rank_of_what_does_not_exist(folder: Path, name: str) -> None:
    judgement = judge(folder, f"{proof_of(folder)}rank {name} 3\n")
    assert judgement.status == 1
    assert "there is no channel" in judgement.text


def test_long_files_need_no_stack(folder: Path) -> None:
    intact = proof_of(folder)
    rule = next(line for line in RING["s1.flows"].splitlines() if "table=3" in line)
    with (folder / "s1.flows").open("a") as file:
        file.writelines(f"{rule.replace('metadata=0x1', f'metadata={n}')}\n" for n in range(DEEP))
    many = "class 00:00:00:00:00:00/00:00:00:00:00:00\n" * DEEP
    judgement = judge(folder, with_files_of(intact, folder) + many)
    assert judgement.status in (0, 1), judgement.text[:200]


def test_copies_that_multiply_do_not_fill_the_memory(tmp_path: Path) -> None:
    count = 40
    links = [
        {"a": f"s{i}", "a_port": port, "b": f"s{i + 1}", "b_port": port + 2}
        for i in range(1, count)
        for port in (2, 3)
    ]
    switches = [{"name": f"s{i}", "dpid": i} for i in range(1, count + 1)]
    hosts = [
        {"name": f"h{i}", "mac": f"02:00:00:00:00:0{i}", "ip": f"10.0.0.{i}", "port": 1}
        for i in (1, 2)
    ]
    hosts[0]["switch"], hosts[1]["switch"] = "s1", f"s{count}"
    files = {"fabric.json": json.dumps({"switches": switches, "hosts": hosts, "links": links})}
    for i in range(1, count):
        files[f"s{i}.flows"] = "cookie=0x1,table=0,priority=1 actions=output:2,output:3\n"
    files[f"s{count}.flows"] = "cookie=0x1,table=0,priority=1 actions=output:1\n"
    folder = write_rules(tmp_path / "rules", files)
    ranks = "".join(f"rank s{i}:{p}/0 {i + 1}\n" for i in range(1, count) for p in (2, 3))
    addresses = {Cube(mac_value(str(host["mac"])), ALL) for host in hosts}
    classes = "".join(f"{line}\n" for line in class_lines(set(), addresses))
    head = "knotless-proof 3\nflow-control pause\n"
    file = tmp_path / "proof"
    file.write_text(with_files_of(f"{head}claim safe\nbound 99\n{ranks}{classes}", folder))
    judgement = run(folder, file, memory_kib=1 << 19)
    assert judgement.status in (1, 2)
    assert "deadlock" not in judgement.text


@pytest.fixture
def routes(tmp_path: Path) -> Path:
    folder, _ = proven(leaf_spine(2, 2).write(tmp_path / "net"), tmp_path / "proof")
    return folder


@pytest.mark.parametrize(
    "text",
    [
        "0.0.0.0/0 via " + "Ethernet0 " * DEEP,
        "0.0.0.0/0 " * DEEP,
        "10.0.0.0/24 via \x1b[2J",
        "\x00",
        "9" * DEEP,
        "10.0.0.0/24 via Vlan10\r",
    ],
    ids=range(6),
)
def test_routes_that_are_none(routes: Path, text: str) -> None:
    (routes / "leaf0.routes").write_text(f"{text}\n")
    judgement = run("--print", routes)
    assert judgement.status == 2
    assert judgement.text.startswith("knotless-verify: leaf0.routes:1: ")
    assert all(character >= " " for character in judgement.text[:-1])
    assert len(judgement.text) < 1000


def test_long_tables_need_no_stack(routes: Path) -> None:
    prefixes = (f"11.{n >> 16}.{n >> 8 & 255}.{n & 255}/32" for n in range(DEEP))
    with (routes / "leaf0.routes").open("a") as file:
        file.writelines(f"{prefix} local\n" for prefix in prefixes)
    judgement = run("--print", routes)
    assert judgement.status == 0
    assert judgement.text.count("\nroute leaf0 11.") == DEEP


@pytest.mark.seeds(300, gate=60)
@pytest.mark.parametrize("name", ["fabric.json", "leaf0.routes"])
def test_damaged_routes_never_end_the_program_by_a_fault(
    routes: Path, name: str, seed: int
) -> None:
    damage_bytes(routes / name, random.Random(seed))  # noqa: S311 - it only has to be repeatable
    judgement = run("--print", routes)
    assert judgement.status in (0, 1, 2)
    if judgement.status:
        assert judgement.text.startswith("knotless-verify: ")


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    subnet = of_plan(make_plan(load("ring,5"), "dor"))
    assert subnet is not None
    return proven_subnet(subnet.write(tmp_path / "net"), tmp_path / "proof")[0]


@pytest.mark.parametrize(
    "text",
    [
        "0x0001 port " + "1 " * DEEP,
        "0x0001 " * DEEP,
        "0x0001 port \x1b[2J",
        "\x00",
        "9" * DEEP,
        "0x0001 port 1\r",
        "sl2vl 1 1 : " + "0 " * DEEP,
        f"0x{'0' * DEEP}1 port 1",
    ],
    ids=range(8),
)
def test_tables_that_are_none(tables: Path, text: str) -> None:
    (tables / "s1.lft").write_text(f"{text}\n")
    judgement = run("--print", tables)
    assert judgement.status == 2
    assert judgement.text.startswith("knotless-verify: s1.lft:1: ")
    assert all(character >= " " for character in judgement.text[:-1])
    assert len(judgement.text) < 1000


def test_tables_of_all_lids_need_no_stack(tables: Path) -> None:
    text = (tables / "s1.lft").read_text()
    more = "".join(f"0x{lid:04x} port 1\n" for lid in range(0x1000, 0xC000))
    (tables / "s1.lft").write_text(text + more)
    judgement = run("--print", tables)
    assert judgement.status == 0
    assert judgement.text.count("\nentry s1 ") == 0xB000 + 5


@pytest.mark.seeds(300, gate=60)
@pytest.mark.parametrize("name", ["fabric.json", "s1.lft"])
def test_damaged_tables_never_end_the_program_by_a_fault(
    tables: Path, name: str, seed: int
) -> None:
    damage_bytes(tables / name, random.Random(seed))  # noqa: S311 - it only has to be repeatable
    judgement = run("--print", tables)
    assert judgement.status in (0, 1, 2)
    if judgement.status:
        assert judgement.text.startswith("knotless-verify: ")


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    return write_rules(tmp_path / "bridges", files_of_bridges("ring,4", "updown"))


@pytest.mark.parametrize(
    ("number", "text", "reason"),
    [
        (1, "ip link set dev s1 up", "ip link set dev s1 down is expected"),
        (1, "#" * DEEP, "ip link set dev s1 down is expected"),
        (2, "ip link set dev s1 type bridge vlan_filtering 0", "type bridge vlan_filtering 1"),
        (3, "ip -batch - <<'END'", "bridge -batch - <<'END' is expected"),
        (4, "vlan add dev s1-eth1 vid 5 " + "untagged " * DEEP, "not a membership"),
        (4, "fdb replace " * DEEP, "not covered"),
        (4, "\x1b[2J", "not covered"),
        (4, "END", "ip -batch - <<'END' is expected"),
        (4, "vlan add dev s1-eth" + "9" * DEEP + " vid 5", "not a number"),
    ],
    ids=range(9),
)
def test_scripts_that_are_none(scripts: Path, number: int, text: str, reason: str) -> None:
    lines = (scripts / "s1.bridge").read_text().splitlines()
    lines[number] = text
    (scripts / "s1.bridge").write_text("\n".join(lines) + "\n")
    judgement = run("--print", scripts)
    assert judgement.status == 2
    assert judgement.text.startswith("knotless-verify: s1.bridge:")
    assert reason in judgement.text
    assert all(character >= " " for character in judgement.text[:-1])
    assert len(judgement.text) < 1000


def test_long_scripts_need_no_stack(scripts: Path) -> None:
    file = scripts / "s1.bridge"
    head, end, tail = file.read_text().partition("\nEND\n")
    device = "s1-eth1 master static vlan 2"
    more = [f"fdb replace {mac_text((6 << 40) + n)} dev {device}" for n in range(DEEP)]
    file.write_text("\n".join([head, *more]) + end + tail)
    judgement = run("--print", scripts)
    assert judgement.status == 0
    assert judgement.text.count("eth_dst 0x60000") == DEEP


@pytest.mark.seeds(300, gate=60)
@pytest.mark.parametrize("name", ["fabric.json", "s1.bridge"])
def test_damaged_scripts_never_end_the_program_by_a_fault(
    scripts: Path, name: str, seed: int
) -> None:
    damage_bytes(scripts / name, random.Random(seed))  # noqa: S311 - it only has to be repeatable
    judgement = run("--print", scripts)
    assert judgement.status in (0, 1, 2)
    if judgement.status:
        assert judgement.text.startswith("knotless-verify: ")


def damage_bytes(file: Path, rng: random.Random) -> None:
    """Replace some bytes of a file."""
    data = bytearray(file.read_bytes())
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        new = rng.choice([b"", b"\x00", b'"', b"\\", b"[", b"9" * 30, b",", b"\n", b"\xff"])
        data[at : at + rng.randint(0, 3)] = new
    file.write_bytes(data)


@pytest.mark.seeds(300, gate=60)
def test_damaged_bytes_never_end_the_program_by_a_fault(folder: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    damage_bytes(folder / rng.choice(["fabric.json", "s1.flows", "s1.groups"]), rng)
    judgement = run("--print", folder)
    assert judgement.status in (0, 1, 2)
    if judgement.status:
        assert judgement.text.startswith("knotless-verify: ")
