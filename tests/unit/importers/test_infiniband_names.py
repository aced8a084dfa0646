"""Names that engineers use: descriptions of InfiniBand nodes, and pictures of large fabrics."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.drawing import draw_fabric
from knotless.importers.fabric import AnyFabric
from knotless.importers.paths import read_paths
from knotless.topologies import load
from knotless.topologies.layout import place_switches
from knotless.topologies.validate import is_name
from knotless.verification.imported import verdict_of_imported
from tests.support.infiniband_dumps import random_subnet
from tests.support.tiers import cluster

CYCLE = [
    "A01-P1-IBLEAF-00-00:33/0",
    "B01-P1-IBSPINE-00:2/0",
    "A01-P1-IBLEAF-00-01:34/0",
    "B01-P1-IBSPINE-01:1/0",
]


def read(folder: Path) -> AnyFabric:
    return read_paths([folder])


def test_a_cycle_has_the_names_of_switches(tmp_path: Path) -> None:
    verdict = verdict_of_imported(read(cluster(8, 4, 60, bounce=True).write(tmp_path)))
    assert (verdict.acyclic, verdict.cycle) == (False, CYCLE)
    for witness in verdict.witnesses:
        assert witness.source.startswith("gpu-00")
        assert "-mlx5_" in witness.destination


@pytest.mark.seeds(30)
def test_names_are_descriptions_where_these_are_distinct(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)  # noqa: S311
    subnet = random_subnet(seed)
    switches = [
        ("MF0;core-{n}:MQM9700/U1", "core-{n}"),
        ("MF0;director:MCS8500/L{n:02d}/U1", "director-L{n:02d}-U1"),
        ("Infiniscale-IV Mellanox Technologies", None),
        ("Quantum  Mellanox Technologies #{n}", "Quantum-Mellanox-Technologies-{n}"),
        ("leaf {n} [rack/7]", "leaf-{n}-rack-7"),
        ("{n}-tor", "{n}-tor"),
        ("", None),
    ]
    hosts = [
        ("gpu-{n} mlx5_0", "gpu-{n}-mlx5_0"),
        ("localhost mlx5_0", None),
        ("gpu-{n}", "gpu-{n}"),
        ("node{n} HCA-1 (ConnectX)", "node{n}-HCA-1-ConnectX"),
    ]
    expected = []
    for n in range(len(subnet.names)):
        text, name = rng.choice(switches)
        subnet.names[n] = text.format(n=n)
        expected.append((subnet.names[n], name and name.format(n=n), f"S-{0x500000 + n:016x}"))
    for n, (_, *end) in enumerate(subnet.hosts):
        text, name = rng.choice(hosts)
        subnet.hosts[n] = (text.format(n=n), end[0], end[1])
        ids = f"H-{0x900000 + 2 * n:016x}"
        expected.append((subnet.hosts[n][0], name and name.format(n=n), ids))
    fabric = read(subnet.write(tmp_path)).fabric
    names = [*(s.name for s in fabric.switches), *(h.name for h in fabric.hosts)]
    times = Counter(text for text, _, _ in expected)
    assert len({*names}) == len(names)
    assert all(map(is_name, names))
    for name, (text, short, ids) in zip(names, expected, strict=True):
        if not text or (short is None and times[text] > 1):
            assert name == ids
        elif text.startswith("MF0;director") and times[text] == 1:
            assert name in ("director", short)
        elif short is not None:
            assert name == short


def test_without_tables_one_line_says_so(tmp_path: Path) -> None:
    subnet = cluster()
    subnet.write(tmp_path, "dump_fts.txt", "opensm-lfts.dump")
    verdict = verdict_of_imported(read(tmp_path))
    assert (verdict.switches, verdict.hosts, verdict.acyclic) == (40, 542, None)
    assert verdict.problems == ["none of the 293222 pairs can be followed"]
    (missing,) = verdict.missing
    assert missing.startswith("the forwarding tables of A01-P1-IBLEAF-00-00, A01-P1-IBLEAF-00-01")
    done = CliRunner(mix_stderr=False).invoke(main, ["check", str(tmp_path)])
    assert done.exit_code == 1
    assert len([line for line in done.stdout.splitlines() if "IBLEAF" in line]) == 1


@pytest.mark.parametrize("of_spines", [0, 1, 12])
def test_tiers_are_drawn_as_layers(of_spines: int, tmp_path: Path) -> None:
    """Also if some spines, or all of them, have a host for management."""
    subnet = cluster(bounce=True)
    for spine in range(of_spines):
        subnet.hosts.append((f"ufm-{spine}", 28 + spine, 40))
    imported = read(subnet.write(tmp_path))
    assert (len(imported.fabric.switches), len(imported.fabric.hosts)) == (40, 542 + of_spines)
    places = place_switches(imported.fabric)
    leaves = [at for name, at in places.items() if "LEAF" in name]
    spines = [at for name, at in places.items() if "SPINE" in name]
    assert max(y for _, y in leaves) + 5 < min(y for _, y in spines)
    assert len({y for _, y in spines}) == 1
    assert max(x for x, _ in spines) > 0.8 * max(x for x, _ in leaves)
    assert len({*places.values()}) == 40


def test_the_cycle_is_marked(tmp_path: Path) -> None:
    imported = read(cluster(bounce=True).write(tmp_path / "files"))
    ends = {imported.channels.end_of(name) for name in CYCLE}
    plain, red = tmp_path / "plain.svg", tmp_path / "red.svg"
    draw_fabric(imported.fabric, str(plain))
    draw_fabric(imported.fabric, str(red), ends)
    assert "#c8102e" not in plain.read_text()
    assert red.read_text().count("#c8102e") >= 2 * len(CYCLE)
    assert "20 hosts" in plain.read_text()


def test_random_graphs_have_no_tiers() -> None:
    """Switches of a layer are linked, so the number of hosts says nothing about tiers."""
    fabric = load("random,30,degree=4,hosts=2,seed=1")
    hosts = tuple(host for host in fabric.hosts if host.name != "h1")
    places = place_switches(replace(fabric, hosts=hosts))
    assert places == place_switches(fabric)
