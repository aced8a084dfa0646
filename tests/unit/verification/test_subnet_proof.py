"""Proofs of InfiniBand subnets: their form, what is written, and what they do not cover."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from knotless.base.errors import ProofError
from knotless.routing.plan import make_plan
from knotless.topologies import load
from tests.support.infiniband_dumps import Subnet, of_plan
from tests.support.proofs import VERIFIER, judge
from tests.support.subnet_trials import proven

LIDS = r"0x[0-9a-f]{4}(?:/0x[0-9a-f]{4})?"
HEAD = (
    r"knotless-proof 3\nflow-control credits\n"
    r"(?:file (?:fabric\.json|[\w-]+\.lft) [0-9a-f]{64}\n)+"
)
QUEUE = r"[\w-]+:\d+/\d+"
SAFE = re.compile(
    rf"{HEAD}claim safe\nbound \d+\n(?:rank {QUEUE} \d+\n)*"
    rf"(?:class {LIDS}\n)+"
)
CYCLE = re.compile(
    rf"{HEAD}claim cycle\n"
    rf"(?:wait {QUEUE} {QUEUE} [\w-]+ {LIDS} {LIDS}\nvia [\w-]+(?: [\w-]+:\d+)+\n)+"
)


def subnet(spec: str, engine: str) -> Subnet:
    """Return the subnet of a plan."""
    made = of_plan(make_plan(load(spec), engine))
    assert made is not None
    return made


def in_one_lane(spec: str, engine: str) -> Subnet:
    """Return the same without SLs."""
    made = subnet(spec, engine)
    made.sl2vl, made.path_sls = {}, {}
    return made


def test_the_form_of_both_claims(tmp_path: Path) -> None:
    for made, form in (
        (subnet("ring,5", "dor"), SAFE),
        (in_one_lane("ring,4", "updown"), SAFE),
        (in_one_lane("ring,5", "dor"), CYCLE),
    ):
        _, proof = proven(made.write(tmp_path / "net"), tmp_path / "proof")
        assert form.fullmatch(proof), proof
        for file in (tmp_path / "net").iterdir():
            file.unlink()


def test_what_is_written(tmp_path: Path) -> None:
    made = subnet("ring,3", "updown")
    made.sl2vl[0, 1, 2] = (*range(15), 14)
    made.path_sls[0, 2] = 3
    made.lfts[0][made.switch_lid(0)] = 0
    folder, _ = proven(made.write(tmp_path / "net"), tmp_path / "proof")
    text = (folder / "s1.lft").read_text()
    assert "0x0001 port 1\n" in text
    assert f"0x{made.switch_lid(0):04x} port 0\n" in text
    assert "sl2vl 1 2 : 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 14\n" in text
    assert "from 1 sl 3 to 0x0002\n" in text
    fabric = json.loads((folder / "fabric.json").read_text())
    assert fabric["hosts"][0] == {"name": "h1", "switch": "s1", "port": 1, "lid": 1, "lmc": 0}
    assert not VERIFIER.exists() or judge(folder, (tmp_path / "proof").read_text()).accepted


def test_files_of_switches_that_are_gone_are_removed(tmp_path: Path) -> None:
    for spec, names in (("ring,5", 5), ("ring,4", 4)):
        source = in_one_lane(spec, "updown").write(tmp_path / spec)
        folder, _ = proven(source, tmp_path / "proof")
        assert len([*folder.glob("*.lft")]) == names
    (folder / "other.lft").write_text("")
    with pytest.raises(ProofError, match=r"other\.lft of another fabric"):
        proven(source, tmp_path / "proof")


def without_a_path_sl() -> Subnet:
    made = subnet("ring,5", "dor")
    del made.path_sls[0, 3]
    return made


def without_lanes_to_a_host() -> Subnet:
    made = subnet("ring,5", "dor")
    del made.sl2vl[0, 2, 1]
    return made


def dropped_at_a_host() -> Subnet:
    made = subnet("ring,5", "dor")
    made.sl2vl[0, 2, 1] = (15,) * 16
    return made


def without_an_entry() -> Subnet:
    made = in_one_lane("ring,4", "updown")
    del made.lfts[1][1]
    return made


def with_a_lid_of_nobody() -> Subnet:
    made = in_one_lane("ring,4", "updown")
    made.lfts[1][0x500] = 0
    return made


def with_a_cycle_for_switches() -> Subnet:
    """Return an acyclic ring in which packets to one switch go on around it."""
    made = in_one_lane("ring,5", "updown")
    onward = {(s, peer): port for (s, port), (kind, peer, _) in made.ends.items() if kind[0] == "s"}
    for switch in range(5):
        for target in range(5):
            way = onward[switch, (switch + 1) % 5]
            made.lfts[switch][made.switch_lid(target)] = 0 if switch == target else way
    return made


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (
            without_a_path_sl,
            "proofs need the SLs of all paths (saquery -p) where SLs use different VLs, and that"
            " from h1 to LID 3 is not known",
        ),
        (
            without_lanes_to_a_host,
            "proofs need the SL to VL table of s1 from port 2 to port 1",
        ),
        (
            dropped_at_a_host,
            "such a proof says that all is delivered, and s1 drops SL 0 at port 1 (VL 15)",
        ),
        (
            without_an_entry,
            "such a proof says that all is delivered, and not all is: see check",
        ),
        (with_a_lid_of_nobody, "s2 takes LID 1280 for its own, and nobody has it"),
        (
            with_a_cycle_for_switches,
            "proofs do not cover subnets where packets to switches' own LIDs close a cycle",
        ),
    ],
)
def test_what_proofs_do_not_cover_is_named_and_nothing_is_written(
    tmp_path: Path, make: Callable[[], Subnet], reason: str
) -> None:
    with pytest.raises(ProofError) as raised:
        proven(make().write(tmp_path / "net"), tmp_path / "proof")
    assert str(raised.value) == reason
    assert [path.name for path in tmp_path.iterdir()] == ["net"]


def test_tables_of_all_switches_are_needed(tmp_path: Path) -> None:
    source = in_one_lane("ring,5", "dor").write(tmp_path / "net", "opensm-lfts.dump")
    tables = (source / "dump_fts.txt").read_text()
    (source / "dump_fts.txt").write_text(tables[: tables.rindex("Unicast lids")])
    with pytest.raises(ProofError, match="unknown verdicts|s5 has none"):
        proven(source, tmp_path / "proof")
