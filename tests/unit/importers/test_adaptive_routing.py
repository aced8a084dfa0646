"""Adaptive routing and aggregation nodes of InfiniBand, and SLs that are missing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from knotless.base.errors import KnotlessError
from knotless.importers.file_kinds import Content, kind_of
from knotless.importers.infiniband.far import read_adaptive
from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.adaptive_subnets import Choices, add_stale_lids, far_text, random_adaptive
from tests.support.adaptive_subnets import judged as oracle
from tests.support.infiniband_dumps import of_plan

DATA = Path(__file__).parents[2] / "data" / "fabrics"
NOT_SEEN = "adaptive routing is not seen in these tables"


def judged(*paths: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths(paths))


def test_a_ring_whose_tables_are_safe_has_a_note() -> None:
    verdict = judged(DATA / "adaptive-ring")
    assert verdict.acyclic is True
    assert any(note.startswith(NOT_SEEN) for note in verdict.notes)


def test_minimal_path_groups_close_the_cycle_of_the_ring(tmp_path: Path) -> None:
    """Both neighbours lead to the opposite switch on shortest paths."""
    lids = {"sw-1": 11, "sw-2": 12, "sw-3": 13, "sw-4": 14}
    lines = ["File version: 1"]
    for number, name in enumerate(lids):
        ports = {(number + 1) % 4: "2,", (number + 2) % 4: "2,3,", (number + 3) % 4: "3,"}
        lines += [f"Switch 0x{0x5EC0000000000000 + number:016x}", "Groups Definition:"]
        lines += ["Group  Sub Group  WHBF  Ports", "-----"]
        lines += [f"{way}      0          0     {text}" for way, text in ports.items()]
        lines += ["LFT Definition:", "LID     Static Port  Lid State  Group", "-----"]
        for way, (peer, lid) in enumerate(lids.items()):
            port = 1 if peer == name else int(ports[way][0])
            lines.append(f"0x{lid:04x}  {port}  {'Static' if peer == name else 'Free'}  {way}")
    far = tmp_path / "ibdiagnet2.far"
    far.write_text("\n".join(lines) + "\n")
    verdict = judged(DATA / "adaptive-ring" / "net.txt", far)
    assert (verdict.acyclic, verdict.undelivered, verdict.missing) == (False, 0, [])
    assert len(verdict.cycle) == 4
    assert not any(note.startswith(NOT_SEEN) for note in verdict.notes)


@pytest.mark.seeds(120)
def test_random_choices_agree_with_packets_followed_one_by_one(seed: int, tmp_path: Path) -> None:
    subnet, choices = random_adaptive(seed)
    folder = subnet.write(tmp_path, *(["dump_fts.txt", "opensm-lfts.dump"] if seed % 2 else []))
    (folder / "ibdiagnet2.far").write_text(far_text(subnet, choices))
    verdict = judged(folder)
    assert verdict.missing == []
    assert (verdict.acyclic, verdict.undelivered) == oracle(subnet, choices)


def test_random_choices_for_old_lids_agree_with_packets_followed_one_by_one(
    tmp_path: Path,
) -> None:
    """LIDs that no port has; some differ from others in further ports alone."""
    choices: Choices
    by_choice = 0
    for seed in range(120):
        subnet, choices = random_adaptive(seed)[0], {}
        stale = add_stale_lids(subnet, choices, random.Random(seed))  # noqa: S311
        folder = subnet.write(tmp_path / str(seed))
        (folder / "ibdiagnet2.far").write_text(far_text(subnet, choices))
        verdict = judged(folder)
        assert verdict.missing == []
        assert (verdict.acyclic, verdict.undelivered) == oracle(subnet, choices, stale)
        by_choice += not verdict.acyclic and oracle(subnet, choices, stale[:1])[0]
    assert by_choice > 10


def test_some_switches_without_adaptive_tables_are_a_missing_fact(tmp_path: Path) -> None:
    subnet = of_plan(make_plan(load("mesh,2,2"), "dor"))
    assert subnet is not None
    folder = subnet.write(tmp_path)
    text = far_text(subnet, {})
    (folder / "far").write_text(text[: text.rindex("Switch")])
    verdict = judged(folder)
    assert verdict.acyclic is None
    assert verdict.missing == [f"the adaptive routing of {subnet.names[-1]}"]


@pytest.mark.parametrize(
    ("former", "now", "missing"),
    [
        ("PLFT_NUM: 0", "PLFT_NUM: 1", "which of several tables (PLFT) of 0x0000000000500000"),
        ("Static       0", "Free         9", "the ports of group 9 of 0x0000000000500000"),
        ("0x0001    1", "0x0001    7", "which of two forwarding tables of 0x0000000000500000"),
    ],
)
def test_tables_that_are_not_clear(former: str, now: str, missing: str, tmp_path: Path) -> None:
    subnet = of_plan(make_plan(load("mesh,2,2"), "dor"))
    assert subnet is not None
    folder = subnet.write(tmp_path)
    text = far_text(subnet, {})
    assert former in text
    (folder / "far").write_text(text.replace(former, now, 1))
    verdict = judged(folder)
    assert verdict.acyclic is None
    assert any(text.startswith(missing) for text in verdict.missing)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("Switch 0x1\nSwitch 0x1", "line 2: switch 0x0000000000000001 occurs twice"),
        ("Groups Definition:", "line 1: a table before any line 'Switch 0x...'"),
        ("Switch 0x1\nGroups Definition:\nx 1", "line 3: not a line of adaptive routing: 'x 1'"),
        ("Switch 0x1\nGroups Definition:\n1 0 0 256,", "line 3: port 256 is out of range"),
        ("Switch 0x1\nLFT Definition:\n0xC000 1 Static 0", "line 3: LID 49152 or port 1"),
        ("Switch 0x1\nLFT Definition:\n0x1 256 Static 0", "line 3: LID 1 or port 256"),
    ],
)
def test_wrong_adaptive_tables(lines: str, says: str) -> None:
    with pytest.raises(KnotlessError) as error:
        read_adaptive(lines)
    assert str(error.value).startswith(says)


def test_the_kind_of_the_file() -> None:
    subnet, choices = random_adaptive(1)
    kind = kind_of(Content(far_text(subnet, choices)))
    assert kind is not None
    assert kind.name == "InfiniBand adaptive routing"


def test_aggregation_nodes_are_judged_apart() -> None:
    """Between the four hosts nothing can deadlock; parts of switches that compute could."""
    verdict = judged(DATA / "sharp-nodes")
    assert (verdict.acyclic, verdict.pairs, verdict.undelivered) == (True, 12, 0)
    assert any(
        note.startswith("packets of 8 aggregation nodes, which are not judged, can close a cycle: ")
        for note in verdict.notes
    )


@pytest.mark.parametrize(
    ("spec", "engine"),
    [
        ("ring,5", "lash"),
        ("ring,5", "dfsssp"),
        ("ring,7,hosts=2", "lash"),
        ("ring,7,hosts=2", "dfsssp"),
        ("torus,4,4", "dfsssp"),
    ],
)
def test_engines_that_need_sls_are_unknown_without_them(
    spec: str, engine: str, tmp_path: Path
) -> None:
    """Paths are kept apart by SLs: without these, a cycle is only possible."""
    subnet = of_plan(make_plan(load(spec), engine))
    assert subnet is not None
    assert len({*subnet.path_sls.values()}) > 1
    assert judged(subnet.write(tmp_path / "all")).acyclic is True
    verdict = judged(subnet.write(tmp_path / "none", "path-sl.txt"))
    assert verdict.acyclic is None
    assert verdict.cycle
    assert verdict.missing == ["the SLs of paths (saquery -p): SLs use different VLs"]
    some = dict(list(subnet.path_sls.items())[::2])
    subnet.path_sls = some
    assert judged(subnet.write(tmp_path / "some")).acyclic is not False


def test_a_cycle_of_packets_for_an_old_lid_is_certain(tmp_path: Path) -> None:
    """No engine chooses the SL of packets for a LID that no port has."""
    plan = make_plan(load("ring,5"), "lash")
    subnet = of_plan(plan)
    assert subnet is not None
    for number, lft in enumerate(subnet.lfts, 1):
        lft[77] = min(plan.fabric.neighbours[f"s{number}"])
    verdict = judged(subnet.write(tmp_path, "path-sl.txt"))
    assert (verdict.acyclic, verdict.missing) == (False, [])


def test_a_cycle_of_known_paths_is_certain(tmp_path: Path) -> None:
    subnet = of_plan(make_plan(load("ring,5"), "minimal"))
    assert subnet is not None
    path = next(iter(subnet.path_sls))
    del subnet.path_sls[path]
    verdict = judged(subnet.write(tmp_path))
    assert (verdict.acyclic, verdict.missing) == (False, [])
