"""Paths that may share a VLAN, and the error if there are too few VLANs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from knotless.base.errors import PlanError
from knotless.cli.main import main
from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.graphs.channels import Channels, Ints
from knotless.routing.plan import make_plan
from knotless.routing.vlans.assignment import (
    ASSIGNMENTS,
    FIRST_VLAN,
    MAX_VLANS,
    TAGGINGS,
    assign_vlans,
)
from knotless.topologies import load
from knotless.topologies.formats.files import to_text
from knotless.verification.check import check


def _parallel(count: int) -> Channels:
    """Two switches joined by links, whose channels from the first are numbered from 0."""
    ports = np.tile(np.arange(1, count + 1, dtype=np.int32), 2)
    ends = np.repeat(np.array([0, 1], dtype=np.int32), count)
    return Channels(("s1", "s2"), ends, 1 - ends, ports, ports)


def _vlans(channels: Channels, paths: Ints, **options: Any) -> list[int]:
    """Return the VLAN of each source's path to s2."""
    vlans: list[int] = assign_vlans(channels, paths, **options)[:, 1].tolist()
    return vlans


def _by(*channels: int) -> Ints:
    """One row per source at s1; each goes to s2 through the given channel, -1 for none."""
    paths = np.full((len(channels), 2, 1), -1, dtype=np.int32)
    paths[:, 1, 0] = channels
    return paths


@pytest.mark.parametrize("tagging", TAGGINGS)
@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_sources_that_agree_share_the_first_vlan_that_fits(assignment: str, tagging: str) -> None:
    vlans = _vlans(_parallel(3), _by(0, 1, 0, 2, 1), assignment=assignment, tagging=tagging)
    assert vlans == [2, 3, 2, 4, 3]


def test_sources_that_go_nowhere_fit_anywhere() -> None:
    assert _vlans(_parallel(2), _by(0, -1, 1, -1)) == [2, 2, 3, 2]


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_all_possible_vlans_are_used_and_no_more(assignment: str) -> None:
    few = _vlans(_parallel(7), _by(*range(7)), assignment=assignment, limit=7)
    assert few == list(range(FIRST_VLAN, FIRST_VLAN + 7))
    with pytest.raises(PlanError, match="needs more than 6 VLANs"):
        _vlans(_parallel(7), _by(*range(7)), assignment=assignment, limit=6)


def test_the_4094_vlans_of_802_1q_are_used_except_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (FIRST_VLAN, FIRST_VLAN + MAX_VLANS - 1) == (2, 4094)
    monkeypatch.setattr("knotless.routing.vlans.assignment.MAX_VLANS", 3)
    with pytest.raises(PlanError, match="needs more than 3 VLANs, the limit of 802.1Q"):
        _vlans(_parallel(4), _by(*range(4)), limit=3)


@pytest.mark.parametrize("tagging", TAGGINGS)
@pytest.mark.parametrize(
    ("spec", "engine", "select"),
    [
        ("mesh,4,3,hosts=2", "dor", "spread"),
        ("torus,4,3,hosts=2", "dor", "low-port"),
        ("clos,3,hosts=2", "updown", "spread"),
        ("lsft,2", "lsft", "spread"),
        ("ring,5", "lturn", "spread"),
        ("random,12,degree=3,hosts=2,seed=5", "minimal", "low-port"),
    ],
)
def test_tree_vlans_have_no_loop_and_hold_every_path(
    spec: str, engine: str, select: str, tagging: str
) -> None:
    fabric = load(spec)
    plan = make_plan(fabric, engine, select=select, tagging=tagging, vlans="tree")
    links: dict[int, set[frozenset[tuple[str, int]]]] = {}
    for source in fabric.hosts:
        for target in fabric.hosts:
            hops = plan.path(source.name, target.name)
            row, d = plan.routes.rows[fabric.host_index[source.name]], target.switch
            vlan = int(plan.pair_vlans[row, fabric.switch_index[d]])
            assert tagging == "host" or vlan == plan.vlan_of(source.name)
            of_vlan = links.setdefault(vlan, set())
            for here, there in pairwise(hops):
                of_vlan.add(
                    frozenset({(here.switch, here.out_port), (there.switch, there.in_port)})
                )
    assert set(links) == set(range(2, 2 + plan.vlan_count))
    for of_vlan in links.values():
        assert _is_forest([tuple(name for name, _ in link) for link in of_vlan])
    assert check(fabric, compile_rules(plan), tags=plan.host_tags()).undelivered == 0


def _is_forest(links: list[tuple[str, ...]]) -> bool:
    """Remove leaves until nothing or only loops are left."""
    while links:
        degree = Counter(name for link in links for name in link)
        left = [link for link in links if min(degree[name] for name in link) > 1]
        if len(left) == len(links):
            return False
        links = left
    return True


def test_paths_that_loop_are_refused_and_named() -> None:
    fabric = load("fattree,2,4,2")
    with pytest.raises(PlanError, match="s1 form a loop: those to s5 and s6 enter s11 differ"):
        make_plan(fabric, "fattree", vlans="tree")
    plan = make_plan(fabric, "fattree", vlans="tree", tagging="host")
    assert plan.vlan_count == 4
    assert check(fabric, compile_rules(plan), tags=plan.host_tags()).ok


def test_hosts_that_tag_need_fewer_vlans() -> None:
    """Paths of one host to different destinations may be in different VLANs."""
    fabric = load("torus,4,4,hosts=4")
    assert make_plan(fabric, "minimal", tagging="host").vlan_count <= 4
    assert make_plan(fabric, "minimal").vlan_count >= 4


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"vlans": "trees"}, "vlans: 'trees' is not one of 'default', 'tree'"),
        ({"max_vlans": 0}, "max_vlans: 0 is not at least 1"),
        ({"max_vlans": 4094}, "max_vlans: 4094 is not at most 4,093"),
        ({"vlans": "tree", "max_vlans": 3}, "needs more than 3 VLANs"),
        ({"tagging": "nobody"}, "tagging: 'nobody' is not one of 'switch', 'host'"),
    ],
)
def test_choices_that_cannot_be_had(options: dict[str, Any], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        make_plan(load("mesh,4,4"), "dor", **options)


@pytest.fixture(scope="module")
def trunk(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a fabric: two switches with 4,095 links, each used by the paths of one host."""
    few, count = load("mesh,2,1"), 4095
    hosts = tuple(
        replace(
            host,
            name=f"{host.name}x{i}",
            mac=f"02:00:00:0{s}:{i >> 8:02x}:{i & 255:02x}",
            ip=f"10.{s}.{i >> 8}.{i & 255}",
            port=1 + i,
        )
        for s, host in enumerate(few.hosts)
        for i in range(count)
    )
    ports = range(count + 1, 2 * count + 1)
    links = tuple(replace(few.links[0], a_port=port, b_port=port) for port in ports)
    file = tmp_path_factory.mktemp("trunk") / "trunk.json"
    file.write_text(to_text(replace(few, hosts=hosts, links=links)))
    return str(file)


@pytest.mark.thin(2)
@pytest.mark.parametrize("vlans", ASSIGNMENTS)
@pytest.mark.parametrize("command", ["plan", "flows", "export --to l2"])
def test_a_fabric_that_needs_more_vlans_than_there_are(
    command: str, vlans: str, trunk: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = [*command.split(), trunk, "--engine=minimal", f"--vlans={vlans}", f"--out={out}"]
    done = CliRunner(mix_stderr=False).invoke(main, words)
    assert (done.exit_code, done.stdout, out.exists()) == (2, "", False)
    assert done.stderr == (
        "knotless: this plan needs more than 4093 VLANs, the limit of 802.1Q; --select low-port may"
        " need fewer\n"
    )
