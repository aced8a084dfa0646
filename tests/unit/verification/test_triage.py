"""Why queues are paused: storms made with the simulator, written as the state of SONiC switches."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from knotless.cli.main import main
from knotless.importers.fabric import TableFabric
from knotless.importers.paths import read_paths
from knotless.importers.sonic.pauses import pauses_of
from knotless.verification.triage import Root, Triage, triage
from tests.support.changed_fabrics import changed
from tests.support.router_dumps import HOST_PORT
from tests.support.router_nets import leaf_spine
from tests.support.storms import Storm, storm, write

KINDS = ("deadlock", "slow", "stopped", "two")


def explained(folder: Path) -> Triage:
    imported = read_paths([folder])
    assert isinstance(imported, TableFabric)
    return triage(imported, pauses_of(imported))


def pairs_blocked(made: Storm, root: Root) -> int:
    """Count the pairs whose packets can meet a queue behind the root, or are for its host."""
    behind = {tuple(name.rpartition("/")[0].split(":")) for name in root.behind}
    behind.add((root.switch, "Vlan10"))
    net = made.net
    count = 0
    for source in net.hosts:
        for target, prefix in net.hosts.items():
            address = ipaddress.ip_network(prefix, strict=False)[1]
            steps = net.steps(source, address)
            count += source != target and any(out in behind for _, out, _ in steps)
    return count


def storm_is_explained(kind: str, seed: int, folder: Path) -> None:
    """Make a storm and have it explained: whole, then without a switch that matters."""
    made = storm(kind, seed)
    result = explained(write(made, folder / "whole", seed))
    assert result.missing == []
    left_out = f"r{seed % 3}" if kind == "deadlock" else made.slow[-1]
    if kind == "deadlock":
        assert made.knot
        assert result.answer == "deadlock"
        (cycle,) = result.deadlocks
        assert {tuple(name.rpartition("/")[0].split(":")) for name in cycle} == made.knot
        assert result.roots == []
    else:
        assert (made.knot, result.deadlocks) == (set(), [])
        assert result.answer == "root"
        assert result.certain is (bool(made.stopped) and not made.counters_only)
        roots = {root.port: root for root in result.roots}
        assert roots.keys() == {f"{leaf}:{HOST_PORT}" for leaf in made.slow}
        for leaf in made.slow:
            root = roots[f"{leaf}:{HOST_PORT}"]
            assert (root.cause, root.hosts) == ("host", (f"gpu-of-{leaf}",))
            assert (root.pairs, root.exact) == (pairs_blocked(made, root), True)
    result = explained(write(made, folder / "part", seed, [left_out]))
    assert result.answer == "not-enough"
    assert f"the files of {left_out}" in result.missing
    assert {root.switch for root in result.roots} <= {*made.slow} - {left_out}


@pytest.mark.thin(10)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.seeds(10)
def test_storms(kind: str, seed: int, tmp_path: Path) -> None:
    storm_is_explained(kind, seed, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(10, 110))
def test_a_hundred_storms(kind: str, seed: int, tmp_path: Path) -> None:
    storm_is_explained(kind, seed, tmp_path)


def run(*words: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, ["triage", *words])


def test_the_command_names_the_root_and_its_host(tmp_path: Path) -> None:
    folder = str(write(storm("stopped", 0), tmp_path, 0))
    done = run(folder)
    assert (done.exit_code, done.stderr) == (1, "")
    sentence = "the root is leaf1:Ethernet400, host gpu-of-leaf1, which blocks 4 pairs"
    assert done.stdout.splitlines()[0].endswith(f": no cycle, {sentence}")
    done = run(folder, "--json")
    assert done.exit_code == 1
    values = json.loads(done.stdout)
    assert (values["answer"], values["deadlocks"], values["missing"]) == ("root", [], [])
    assert values["roots"][0]["port"] == "leaf1:Ethernet400"


def test_the_command_names_the_queues_of_a_deadlock(tmp_path: Path) -> None:
    made = storm("deadlock", 1)
    done = run(str(write(made, tmp_path, 1)))
    assert done.exit_code == 1
    answer, cycle = done.stdout.splitlines()[:2]
    assert answer.endswith(f": deadlock of {len(made.knot)} queues")
    assert cycle.startswith(f"  cycle of {len(made.knot)} queues: r0:Ethernet0/")


def test_nothing_is_paused(tmp_path: Path) -> None:
    made = storm("stopped", 0)
    made.stopped, made.frames = set(), {}
    done = run(str(write(made, tmp_path, 1)))
    assert done.exit_code == 0
    assert done.stdout.endswith(": nothing is paused\n")


def test_nothing_tells_about_pauses(tmp_path: Path) -> None:
    done = run(str(leaf_spine(2, 1).write(tmp_path)))
    assert done.exit_code == 2
    assert "nothing tells about pauses; needed are pfcwd show stats" in done.stderr


def test_a_switch_that_was_not_asked(tmp_path: Path) -> None:
    """It has files, but none about pauses: the chain may go on there."""
    made = storm("stopped", 1)
    folder = write(made, tmp_path, 1)
    for name in ("pfc", "pfcwd", "counters_db.json"):
        (folder / made.slow[0] / name).unlink(missing_ok=True)
    file = folder / made.slow[0] / "appl_db.json"
    values = json.loads(file.read_text())
    kept = {key: row for key, row in values.items() if "INSTORM" not in key}
    file.write_text(json.dumps(kept))
    result = explained(folder)
    assert result.answer == "not-enough"
    assert result.missing == [f"the pauses of {made.slow[0]}: pfcwd show stats, or its APPL_DB"]


def test_congestion_without_a_pause_at_the_end(tmp_path: Path) -> None:
    """The port to the host is overloaded, not paused: the fullest queue is named."""
    made = storm("stopped", 2)
    (leaf,) = made.slow
    made.stopped.discard((leaf, HOST_PORT))
    del made.frames[leaf, HOST_PORT]
    folder = write(made, tmp_path, 2)
    (root,) = explained(folder).roots
    assert (root.cause, root.switch, root.port) == ("congestion", leaf, "")
    heads = " ".join(f"UC{n}" for n in range(8))
    marks = f"Egress shared pool occupancy per unicast queue:\nPort {heads}\n---- ----\n"
    rows = f"Ethernet0 0 0 0 100 0 0 0 0\n{HOST_PORT} 0 0 0 90,000 0 0 0 0\n"
    (folder / leaf / "watermarks").write_text(marks + rows)
    (root,) = explained(folder).roots
    assert (root.port, root.hosts) == (f"{leaf}:{HOST_PORT}", (f"gpu-of-{leaf}",))
    assert "is congestion at" in root.text


def test_pauses_of_counters_in_databases(tmp_path: Path) -> None:
    """Counters of ports, and queues that the chip says are paused, as COUNTERS_DB has them."""
    counters = {
        "COUNTERS_PORT_NAME_MAP": {"Ethernet0": "oid:0x1"},
        "COUNTERS_QUEUE_NAME_MAP": {"Ethernet4:4": "oid:0x2"},
        "COUNTERS:oid:0x1": {
            "SAI_PORT_STAT_PFC_3_RX_PKTS": "7",
            "SAI_PORT_STAT_PFC_4_RX_PKTS": "0",
        },
        "COUNTERS:oid:0x2": {"SAI_QUEUE_ATTR_PAUSE_STATUS": "true"},
    }
    folder = changed(tmp_path, "control-safe")
    (folder / "r0" / "counters_db.json").write_text(json.dumps(counters))
    imported = read_paths([folder])
    assert isinstance(imported, TableFabric)
    pauses = pauses_of(imported)
    assert pauses.paused == {("r0", "Ethernet0", 3): "7 PFC frames received"}
    assert pauses.stopped == {("r0", "Ethernet4", 4): "SAI_QUEUE_ATTR_PAUSE_STATUS"}
    assert pauses.watched == {"r0"}
