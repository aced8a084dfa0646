"""The files of InfiniBand tools, line by line: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.base.errors import KnotlessError, RuleError
from knotless.importers.file_kinds import Content, kind_of
from knotless.importers.infiniband.lfts import read_tables
from knotless.importers.infiniband.path_sls import read_path_sls
from knotless.importers.infiniband.sl2vl import read_sl2vl
from knotless.importers.infiniband.subnet import subnet_of
from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.formats.ibnetdiscover import PortIds, discovered
from knotless.verification.imported import verdict_of_imported
from tests.support.infiniband_dumps import Subnet, of_plan

CABLES = """#
vendid=0x2c9
switchguid=0x10(10)
Switch\t36 "S-0000000000000010"\t\t# "core; lid 9 lmc 9" enhanced port 0 lid 4 lmc 0
[1]\t"H-0000000000000020"[1](21) \t\t# "two ports" lid 8 4xEDR
[2]\t"H-0000000000000020"[2](22) \t\t# "two ports" lid 12 4xEDR
[3]\t"H-0000000000000030"[1](31) \t\t# "late" lid 16 4xEDR

caguid=0x20
Ca\t2 "H-0000000000000020"\t\t# "two ports"
[1](21) \t"S-0000000000000010"[1]\t\t# lid 8 lmc 2 "core; lid 9 lmc 9" lid 4 4xEDR
[2](22) \t"S-0000000000000010"[2]\t\t# lid 12 lmc 2 "core; lid 9 lmc 9" lid 4 4xEDR
"""

RECORD = """PathRecord dump:
\t\tdgid....................fe80::20:0
\t\tdlid....................{dlid}
\t\tslid....................{slid}
\t\tsl......................{sl}
"""


def test_cables_with_their_lids() -> None:
    read = discovered(CABLES)
    assert read.ids == {
        ("S-0000000000000010", 0): PortIds(4, 0, 0x10),
        ("H-0000000000000020", 1): PortIds(8, 2, 0x21),
        ("H-0000000000000020", 2): PortIds(12, 2, 0x22),
        ("H-0000000000000030", 1): PortIds(16, 0, 0x31),
    }
    assert read.descriptions == {
        "S-0000000000000010": "core; lid 9 lmc 9",
        "H-0000000000000020": "two ports",
        "H-0000000000000030": "",
    }
    subnet = subnet_of("x", read)
    assert [host.name for host in subnet.fabric.hosts] == [
        "two-ports-1",
        "two-ports-2",
        "H-0000000000000030",
    ]
    assert subnet.lids.tolist() == [8, 12, 16, 9, 10, 11, 13, 14, 15]
    assert subnet.owner.tolist() == [0, 1, 2, 0, 0, 0, 1, 1, 1]


def test_records_and_lines_of_path_sls() -> None:
    records = RECORD.format(dlid=5, slid=3, sl="0xA") + RECORD.format(dlid=3, slid=5, sl="0x0")
    assert read_path_sls(records).by_lid == {(3, 5): 10, (5, 3): 0}
    assert read_path_sls("# guid lid sl\n0x0021 5 3\n\n").by_guid == {(0x21, 5): 3}
    with pytest.raises(RuleError, match="line 2: SL 3 and SL 2 for the same path"):
        read_path_sls("0x21 5 2\n0x21 5 3\n")
    with pytest.raises(RuleError, match="line 1: SL 16, at most 15"):
        read_path_sls("0x21 5 16\n")
    with pytest.raises(RuleError, match="a path record without slid, dlid or sl"):
        read_path_sls("PathRecord dump:\n\t\tdlid....................5\n")


@pytest.fixture
def ring() -> Subnet:
    subnet = of_plan(make_plan(load("ring,5"), "minimal"))
    assert subnet is not None
    return subnet


def test_path_sls_by_port_by_node_and_by_lid_are_the_same(ring: Subnet, tmp_path: Path) -> None:
    ring.path_sls = dict.fromkeys(ring.path_sls, 1)
    by_port = ring.write(tmp_path / "port")
    by_node = ring.write(tmp_path / "node")
    lines = (by_node / "path-sl.txt").read_text().splitlines()
    nodes = [f"0x{int(line.split()[0], 16) - 1:x} {line.split(' ', 1)[1]}" for line in lines]
    (by_node / "path-sl.txt").write_text("\n".join(nodes))
    by_lid = ring.write(tmp_path / "lid", "path-sl.txt")
    records = [
        RECORD.format(dlid=lid, slid=ring.lids(host)[0], sl=hex(sl))
        for (host, lid), sl in ring.path_sls.items()
    ]
    (by_lid / "saquery.txt").write_text("".join(records))
    for folder in (by_port, by_node, by_lid):
        verdict = verdict_of_imported(read_paths([folder]))
        assert [note.split(" (")[0] for note in verdict.notes] == [
            "adaptive routing is not seen in these tables"
        ]
        assert {step.value for step in verdict.witnesses} == {1}
        assert list(verdict.vcs) == ["1"]


def test_a_path_with_two_sls_may_have_any(ring: Subnet, tmp_path: Path) -> None:
    """As records of a port with several LIDs can have, or files of different days."""
    ring.path_sls = dict.fromkeys(ring.path_sls, 1)
    folder = ring.write(tmp_path)
    host, lid = next(iter(ring.path_sls))
    other = folder / "other.txt"
    for sl, is_noted in ((1, False), (2, True)):
        other.write_text(f"0x{0x900000 + 2 * host + 1:x} {lid} {sl}\n")
        notes = verdict_of_imported(read_paths([folder])).notes
        noted = "1 paths without a known SL: they are taken to use any SL"
        assert (noted in notes) == is_noted


def test_without_lanes_a_cycle_of_several_sls_is_only_possible(
    ring: Subnet, tmp_path: Path
) -> None:
    first = next(iter(ring.path_sls))
    ring.path_sls[first] = 1
    folder = ring.write(tmp_path, "opensm-sl2vl.dump")
    verdict = verdict_of_imported(read_paths([folder]))
    assert verdict.acyclic is None
    assert len(verdict.cycle) == 5
    assert verdict.missing == ["the SL to VL tables: different SLs may use different VLs"]
    ring.path_sls[first] = 0
    folder = ring.write(tmp_path, "opensm-sl2vl.dump")
    assert verdict_of_imported(read_paths([folder])).acyclic is False


def test_a_turn_without_lanes_is_named(ring: Subnet, tmp_path: Path) -> None:
    for turn in [turn for turn in ring.sl2vl if turn[0] == 0 and turn[1] != turn[2]]:
        del ring.sl2vl[turn]
    verdict = verdict_of_imported(read_paths([ring.write(tmp_path)]))
    assert verdict.acyclic is None
    assert any(text.startswith("the virtual channel from") for text in verdict.missing)
    assert verdict.undelivered > 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0x0001 002 : (x)\n", "line 1: an entry before any 'Unicast lids' line"),
        ("Unicast lids [0-1] of switch Lid 2 guid 0x10 ('x'):\nhello\n", "line 2: not a line of"),
        (
            "Unicast lids [0-1] of switch Lid 2 guid 0x10 ('x'):\n0xC000 001 #\n",
            "line 2: LID 49152 or port 1 is out of range",
        ),
        (
            "Unicast lids [0-1] of switch Lid 2 guid 0x10 ('x'):\n" * 2,
            "line 2: a second table of switch 0x0000000000000010",
        ),
    ],
)
def test_wrong_forwarding_tables(text: str, says: str) -> None:
    with pytest.raises(KnotlessError, match=says):
        read_tables(text)


def test_tables_that_end_too_early() -> None:
    """OpenSM counts LIDs that it does not list; dump_fts counts its lines."""
    head = "Unicast lids [0-3] of switch Lid 2 guid 0x10 ('x'):\n0x0001 001 # (x)\n"
    for end, cut_off in (
        ("", True),
        ("1 lids dumped\n", False),
        ("3 lids dumped\n", False),
        ("0 lids dumped\n", True),
        ("1 valid lids dumped \n", False),
        ("3 valid lids dumped \n", True),
    ):
        assert read_tables(head + end).cut_off == ({16} if cut_off else set()), end


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("1   2   : " + "16 " * 16, "line 2: VL 16, at most 15 exists"),
        ("1   2   : 0 1 2", "line 2: not a line of an SL to VL table"),
    ],
)
def test_wrong_lanes(row: str, says: str) -> None:
    with pytest.raises(KnotlessError, match=says):
        read_sl2vl(f'Switch 0x10, base LID 2, "x"\n{row}\n')


def test_each_file_has_one_kind(ring: Subnet) -> None:
    kinds = {}
    for name, text in ring.files().items():
        kind = kind_of(Content(text))
        assert kind is not None
        kinds[name] = kind.name
    assert kinds == {
        "ibnetdiscover.txt": "ibnetdiscover",
        "dump_fts.txt": "InfiniBand forwarding tables",
        "opensm-lfts.dump": "InfiniBand forwarding tables",
        "opensm-sl2vl.dump": "InfiniBand SL to VL tables",
        "path-sl.txt": "InfiniBand path SLs",
    }


def test_the_lids_of_switches(tmp_path: Path) -> None:
    """Packets to switches themselves are judged apart from those between adapters."""
    safe = of_plan(make_plan(load("mesh,3,2"), "dor"))
    assert safe is not None
    notes = verdict_of_imported(read_paths([safe.write(tmp_path / "safe")])).notes
    assert "packets to the switches' own LIDs close no cycle either" in notes
    lids = [safe.switch_lid(switch) for switch in range(6)]
    ring = [0, 1, 2, 5, 4, 3]
    ports = {(a, peer[1]): p for (a, p), peer in safe.ends.items() if peer[0] == "switch"}
    for place, switch in enumerate(ring):  # every switch is reached clockwise
        for lid in set(lids) - {lids[switch]}:
            safe.lfts[switch][lid] = ports[switch, ring[(place + 1) % 6]]
    verdict = verdict_of_imported(read_paths([safe.write(tmp_path / "ring")]))
    assert verdict.acyclic is True
    assert any("can close a cycle: " in note for note in verdict.notes)
