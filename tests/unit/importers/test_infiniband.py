"""InfiniBand subnets read from files: verdicts of plans and of an oracle, and what is missing."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.base.errors import KnotlessError
from knotless.cli.main import main
from knotless.importers.paths import read_paths
from knotless.routing.graphs.dependencies import find_cycle, virtual_channel
from knotless.routing.plan import Plan, make_plan
from knotless.topologies import load
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.infiniband_dumps import Subnet, of_plan, random_subnet

FABRICS = (
    "ring,4",
    "ring,5",
    "ring,7,hosts=2",
    "mesh,3,3",
    "torus,4,4",
    "torus,3,3,hosts=2",
    "clos,4,hosts=2",
    "fattree2,6",
    "fattree3,4",
    "lsft,3",
    "mtree,2,3",
    "irregular-a",
    "random,10,degree=3,hosts=1,seed=3",
    "random,16,degree=4,hosts=2,seed=5",
)
ENGINES = ("minimal", "updown", "lturn", "lash", "dfsssp", "dl", "smodk", "dor", "prefix")


def judged(*paths: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths(paths))


def unicast_acyclic(plan: Plan) -> bool:
    """Tell whether the dependencies of the paths between hosts close no cycle."""
    channels, hosts = plan.channels, [host.name for host in plan.fabric.hosts]
    index = plan.fabric.switch_index
    edges: set[tuple[int, int]] = set()
    for source in hosts:
        for target in hosts:
            path = plan.path(source, target)[:-1] if source != target else []
            nodes = [
                virtual_channel(channels.leaving[index[hop.switch], hop.out_port], hop.priority)
                for hop in path
            ]
            edges.update(pairwise(nodes))
    return not find_cycle(edges)


def exported(spec: str, engine: str) -> tuple[Plan, Subnet] | None:
    try:
        plan = make_plan(load(spec), engine)
    except KnotlessError:
        return None
    subnet = of_plan(plan)
    return None if subnet is None else (plan, subnet)


def test_the_verdict_of_a_dump_is_that_of_its_plan(tmp_path: Path) -> None:
    """Over fabrics and engines whose paths LIDs can express."""
    counts = {True: 0, False: 0}
    for spec in FABRICS:
        for number, engine in enumerate(ENGINES):
            export = exported(spec, engine)
            if export is None:
                continue
            plan, subnet = export
            folder = subnet.write(tmp_path / f"{spec}-{number}")
            verdict, expected = judged(folder), unicast_acyclic(plan)
            assert verdict.acyclic == expected, (spec, engine)
            assert verdict.undelivered == 0
            assert verdict.pairs == len(plan.fabric.hosts) * (len(plan.fabric.hosts) - 1)
            assert verdict.missing == []
            counts[expected] += 1
    assert counts[True] >= 30
    assert counts[False] >= 5


@pytest.mark.seeds(200)
def test_random_tables_agree_with_packets_followed_one_by_one(seed: int, tmp_path: Path) -> None:
    subnet = random_subnet(seed)
    folder = subnet.write(tmp_path / "all")
    verdict = judged(folder)
    some_known = bool(subnet.path_sls)
    expected, lost = subnet.judged()
    if verdict.acyclic is None:
        # Without SL to VL tables, different SLs may use different VLs; with them, paths need one.
        assert not expected
        assert some_known if not subnet.sl2vl else subnet.judged(unknown_sls=False)[0]
    else:
        assert verdict.acyclic == expected
    assert verdict.undelivered == lost
    assert judged(subnet.write(tmp_path / "few", "opensm-lfts.dump")).acyclic == verdict.acyclic
    if some_known:
        without = judged(subnet.write(tmp_path / "any", "path-sl.txt"))
        acyclic, lost = subnet.judged(with_sls=False)
        unknown = None if subnet.sl2vl and not acyclic else acyclic
        assert without.acyclic in (acyclic, unknown)
        assert without.undelivered == lost
    for witness in verdict.witnesses:
        source = [name for name, _, _ in subnet.hosts].index(_description(witness.source, subnet))
        sl = witness.as_json()["sl"]
        assert isinstance(sl, int)
        held, wanted = _place(witness.held, subnet), _place(witness.wanted, subnet)
        steps = [
            step
            for target in range(len(subnet.hosts))
            if target != source
            for lid in subnet.lids(target)
            for step in pairwise(subnet._walk(source, target, lid, sl, True)[1])
        ]
        assert (held, wanted) in steps


@pytest.mark.seeds(100)
def test_old_lids_agree_with_packets_followed_one_by_one(seed: int, tmp_path: Path) -> None:
    subnet, rng = random_subnet(seed), random.Random(seed)  # noqa: S311
    stale = [500, 501, 640]
    for switch, lft in enumerate(subnet.lfts):
        ports = [port for at, port in subnet.ends if at == switch]
        for lid in stale:
            if ports and rng.random() < 0.8:
                lft[lid] = rng.choice(ports)
    verdict, expected = judged(subnet.write(tmp_path)), subnet.acyclic_with(stale)
    if verdict.acyclic is None:
        assert not expected
        assert not subnet.sl2vl or subnet.acyclic_with(stale, unknown_sls=False)
    else:
        assert verdict.acyclic is expected
    assert verdict.undelivered == subnet.judged()[1]


def _description(name: str, subnet: Subnet) -> str:
    return next(text for text, _, _ in subnet.hosts if text.replace(" ", "-") == name)


def _place(channel: str, subnet: Subnet) -> tuple[int, int, int]:
    switch, _, rest = channel.partition(":")
    port, _, vl = rest.partition("/")
    return subnet.names.index(switch), int(port), int(vl)


@pytest.fixture
def ring() -> Subnet:
    export = exported("ring,5", "minimal")
    assert export is not None
    return export[1]


def test_a_cycle_is_shown_with_a_packet_for_each_step(ring: Subnet, tmp_path: Path) -> None:
    ring.write(tmp_path / "ring")
    words = ["check", str(tmp_path / "ring")]
    picture = tmp_path / "cycle.svg"
    done = CliRunner(mix_stderr=False).invoke(main, [*words, "--json", "--draw", str(picture)])
    assert done.exit_code == 1
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["acyclic"] is False
    assert len(answer["cycle"]) == 5
    assert answer["flow_control"] == "credits"
    assert [step["held"] for step in answer["witnesses"]] == answer["cycle"]
    assert {step["sl"] for step in answer["witnesses"]} == {0}
    assert "#c8102e" in picture.read_text()
    step = answer["witnesses"][0]
    done = CliRunner().invoke(main, [*words, "--pair", step["source"], step["destination"]])
    assert done.exit_code == 0
    assert step["held"] in done.output
    assert step["wanted"] in done.output
    done = CliRunner().invoke(main, words)
    assert "CAN DEADLOCK under credits" in done.output


def test_names_are_descriptions_where_these_are_distinct_names(
    ring: Subnet, tmp_path: Path
) -> None:
    ring.hosts[0] = ("HCA-1; mlx5_0", *ring.hosts[0][1:])
    ring.hosts[1], ring.hosts[2] = ("twin", 1, 1), ("twin", 2, 1)
    fabric = read_paths([ring.write(tmp_path)]).fabric
    names = [host.name for host in fabric.hosts]
    assert names == ["HCA-1-mlx5_0", "H-0000000000900002", "H-0000000000900004", "h4", "h5"]
    assert [switch.dpid for switch in fabric.switches] == [0x500000 + number for number in range(5)]


def test_what_is_missing_is_named_and_makes_the_verdict_unknown(tmp_path: Path) -> None:
    export = exported("mesh,3,3", "updown")
    assert export is not None
    subnet = export[1]
    tables = ("dump_fts.txt", "opensm-lfts.dump")
    verdict = judged(subnet.write(tmp_path / "none", *tables))
    assert verdict.acyclic is None
    assert verdict.missing[0].startswith("the forwarding tables of s1, s2, s3, s4, s5 and 4 more")
    lost = subnet.lfts.pop()
    verdict = judged(subnet.write(tmp_path / "one"))
    assert verdict.acyclic is None
    assert verdict.missing[0] == "the forwarding tables of s9"
    assert verdict.undelivered > 0
    subnet.lfts.append(lost)
    folder = subnet.write(tmp_path / "cut", tables[0])
    text = (folder / tables[1]).read_text()
    (folder / tables[1]).write_text("\n".join(text.split("\n")[:-4]))
    verdict = judged(folder)
    assert verdict.acyclic is None
    assert "the end of the forwarding tables" in verdict.missing[0]


def test_two_dumps_that_differ_make_the_verdict_unknown(tmp_path: Path) -> None:
    export = exported("mesh,2,2", "updown")
    assert export is not None
    folder = export[1].write(tmp_path)
    text = (folder / "dump_fts.txt").read_text()
    assert "0x0001 001" in text
    (folder / "dump_fts.txt").write_text(text.replace("0x0001 001", "0x0001 002", 1))
    verdict = judged(folder)
    assert verdict.acyclic is None
    assert "which of two forwarding tables" in verdict.missing[0]


def test_a_cycle_is_certain_even_if_other_tables_are_missing(ring: Subnet, tmp_path: Path) -> None:
    ring.names.append("far")
    ring.links.append((0, 9, 5, 1))
    ring.hosts.append(("h9", 5, 2))
    verdict = judged(ring.write(tmp_path))
    assert verdict.acyclic is False
    assert verdict.missing == []


def test_lanes_above_seven_are_nodes_of_their_own(ring: Subnet, tmp_path: Path) -> None:
    """A ring with a dateline: lane 13 before it, lane 14 behind."""
    ring.path_sls.clear()
    for switch, port_in, port_out in ring.sl2vl:
        behind = (switch, port_out) in {(4, 2)} or (port_in == 3 and switch in (0, 1))
        ring.sl2vl[switch, port_in, port_out] = (14 if behind else 13,) * 16
    verdict = judged(ring.write(tmp_path))
    assert verdict.acyclic == ring.judged()[0]
    assert set(verdict.vcs) == {"13", "14"}
