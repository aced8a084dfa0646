"""Pauses that are over: storms that the watchdog has restored, counters, and terminal records."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from knotless.cli.main import main
from knotless.importers.fabric import TableFabric
from knotless.importers.paths import read_paths
from knotless.importers.sonic.pauses import Pauses, pauses_of
from tests.support import REPOSITORY
from tests.support.changed_fabrics import changed

FILES = REPOSITORY / "tests" / "data" / "fabrics"
STORMS = FILES / "storms-come-and-go"
STATS = "QUEUE  STATUS  STORM DETECTED/RESTORED  TX OK/DROP\n-----  ------  ----  ----\n"
HISTORY = """\
     Port    Priority    RX Pause Transitions    Total RX Pause Time US    Recent RX Pause Time US\
    Recent RX Pause Timestamp
---------  ----------  ----------------------  ------------------------  -------------------------\
  ---------------------------
Ethernet0        PFC2                     N/A                       N/A                        N/A\
                          N/A
Ethernet0        PFC3                       6                 1,430,570                    527,739\
  03/25/2025, 17:22:37.982800

Ethernet4        PFC3                       0                         0                          0\
                          N/A
"""


def run(*words: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, ["triage", *words])


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(FILES / name, folder / "fabric"))


def pauses_with(folder: Path, files: dict[str, str]) -> Pauses:
    """Return the pauses of a triangle of routers with these files at r0."""
    fabric = changed(folder, "control-safe")
    for name, text in files.items():
        (fabric / "r0" / name).write_text(text)
    imported = read_paths([fabric])
    assert isinstance(imported, TableFabric)
    assert imported.not_read == ()
    return pauses_of(imported)


@pytest.mark.parametrize(
    ("name", "behind", "evidence"),
    [
        ("storms-come-and-go", ["spine0:Ethernet4/3"], "170 storms detected, 170 restored"),
        (
            "terminal-record",
            ["spine0:Ethernet4/3", "spine1:Ethernet4/3"],
            "1204551 PFC frames received",
        ),
    ],
)
def test_history_names_the_root(name: str, behind: list[str], evidence: str) -> None:
    done = run(str(FILES / name), "--json")
    assert (done.exit_code, done.stderr) == (1, "")
    values = json.loads(done.stdout)
    assert (values["answer"], values["certain"], values["missing"]) == ("root", False, [])
    (root,) = values["roots"]
    assert (root["port"], root["cause"]) == ("leaf1:Ethernet400", "host")
    assert (root["behind"], root["evidence"]) == (behind, evidence)
    shown = run(str(FILES / name)).stdout
    assert "queues that were paused at some time, by counters: leaf1:Ethernet400/3" in shown


def test_what_is_paused_now_counts_before_history(tmp_path: Path) -> None:
    folder = copied("storms-come-and-go", tmp_path)
    file = folder / "leaf2" / "pfcwd.txt"
    row = "Ethernet400:3  operational  0/0"
    assert row in file.read_text()
    file.write_text(file.read_text().replace(row, "Ethernet400:3  stormed  8/7"))
    done = run(str(folder), "--json")
    values = json.loads(done.stdout)
    assert (values["certain"], values["queues"]) == (True, ["leaf2:Ethernet400/3"])
    assert [root["port"] for root in values["roots"]] == ["leaf2:Ethernet400"]


def notes_with(folder: Path, *rows: str) -> tuple[str, ...]:
    """Return what is noted of a router whose watchdog counts these rows."""
    table = STATS + "".join(f"{row}  0/0\n" for row in rows)
    return pauses_with(folder, {"pfcwd.txt": table}).notes


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        (("Ethernet0:3  operational  1/1",), ""),
        (("Ethernet0:3  operational  9/9", "Ethernet0:4  operational  9/9"), ""),
        (("Ethernet0:3  operational  90/40",), ""),
        (("Ethernet0:3  operational  170/170", "Ethernet0:4  operational  0/0"), ""),
        (("Ethernet0:3  operational  170/170", "Ethernet0:4  operational  170/170"), "29203"),
        (("Ethernet0:3  operational  170/170", "Ethernet4:3  operational  0/0"), "29203"),
        (("Ethernet0:3  stormed  1/0", "Ethernet4:3  operational  0/0"), "4581"),
    ],
)
def test_what_a_watchdog_itself_may_explain_is_noted(
    tmp_path: Path, rows: tuple[str, ...], note: str
) -> None:
    notes = notes_with(tmp_path, *rows)
    assert len(notes) == bool(note)
    for text in notes:
        assert note in text
        assert "r0:Ethernet0" in text
        assert "r0:Ethernet4" not in text


def test_databases_say_the_same_of_storms(tmp_path: Path) -> None:
    counters = {
        "COUNTERS_QUEUE_NAME_MAP": {"Ethernet0:3": "oid:0x3", "Ethernet0:4": "oid:0x4"},
        "COUNTERS:oid:0x3": {
            "PFC_WD_STATUS": "stormed",
            "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED": "171",
            "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED": "170",
        },
        "COUNTERS:oid:0x4": {"SAI_QUEUE_STAT_PACKETS": "7"},
    }
    notes = pauses_with(tmp_path, {"counters.json": json.dumps(counters)}).notes
    assert [number in note for number, note in zip(("4581", "29203"), notes, strict=True)] == [
        True,
        True,
    ]


def test_without_storms_nothing_was_paused_if_all_were_asked(tmp_path: Path) -> None:
    folder = copied("storms-come-and-go", tmp_path)
    for file in folder.glob("*/pfcwd.txt"):
        file.write_text(file.read_text().replace("170/170", "0/0").replace("41/41", "0/0"))
    done = run(str(folder))
    assert (done.exit_code, done.stdout) == (0, f"{folder.name}: nothing is paused\n")
    (folder / "leaf2" / "pfcwd.txt").unlink()
    done = run(str(folder))
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        f"{folder.name}: UNKNOWN whether queues are paused",
        "  missing: the pauses of leaf2: pfcwd show stats, or its APPL_DB",
    ]


def test_the_history_that_the_command_shows(tmp_path: Path) -> None:
    pauses = pauses_with(tmp_path, {"history": HISTORY})
    assert pauses.paused == {
        ("r0", "Ethernet0", 3): "6 pauses of 1430570 us (show pfc counters)",
    }
    assert not pauses.stopped
    assert pauses.watched == {"r0"}


@pytest.mark.parametrize(
    ("row", "evidence"),
    [
        ({"EST_PORT_STAT_PFC_3_ON2OFF_RX_PKTS": "2"}, "history of pauses in COUNTERS_DB"),
        ({"SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US": "9"}, "history of pauses in COUNTERS_DB"),
        ({"SAI_PORT_STAT_PFC_3_RX_PKTS": "5"}, "5 PFC frames received"),
        ({"SAI_PORT_STAT_PFC_3_TX_PKTS": "5"}, None),
        ({"EST_PORT_STAT_PFC_3_ON2OFF_RX_PKTS": "0"}, None),
    ],
)
def test_history_in_the_counters_of_ports(
    row: dict[str, str], evidence: str | None, tmp_path: Path
) -> None:
    tables = {"COUNTERS_PORT_NAME_MAP": {"Ethernet0": "oid:0x1"}, "COUNTERS:oid:0x1": row}
    pauses = pauses_with(tmp_path, {"counters.json": json.dumps(tables)})
    assert pauses.paused == ({("r0", "Ethernet0", 3): evidence} if evidence else {})


def test_storms_in_the_counters_of_queues(tmp_path: Path) -> None:
    tables: dict[str, Any] = {
        "COUNTERS_QUEUE_NAME_MAP": {"Ethernet4:3": "oid:0x2", "Ethernet4:4": "oid:0x3"},
        "COUNTERS:oid:0x2": {
            "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED": "7",
            "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED": "6",
            "PFC_WD_STATUS": "operational",
        },
        "COUNTERS:oid:0x3": {"PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED": "0"},
    }
    stats = STATS + "Ethernet4:4  operational  3/3  0/0\n"
    files = {"counters.json": json.dumps(tables), "pfcwd": stats}
    assert pauses_with(tmp_path, files).paused == {
        ("r0", "Ethernet4", 3): "7 storms detected, 6 restored",
        ("r0", "Ethernet4", 4): "3 storms detected, 3 restored",
    }


def test_a_record_of_several_commands(tmp_path: Path) -> None:
    heads = " ".join(f"PFC{n}" for n in range(8))
    record = f"""\
Linux r0 5.10.0
admin@r0:~$ uptime
 06:00:00 up 3 days
admin@r0:~$ sudo pfcwd show stats
{STATS}Ethernet4:3  operational  2/2  0/0
root@r0:/home/admin# show pfc counters
Port Rx {heads}
------ ----
Ethernet0 0 0 0 1,204 0 0 0 0
Ethernet4 0 0 0 9 0 0 0 0

Port Tx {heads}
------ ----
Ethernet0 0 0 0 77 0 0 0 0
admin@r0:~$ show pfc counters --history
{HISTORY}[admin@r0 ~]$ echo Ethernet0 PFC3
Ethernet0 PFC3
admin@r0:~$ """
    assert pauses_with(tmp_path, {"log.txt": record}).paused == {
        ("r0", "Ethernet4", 3): "2 storms detected, 2 restored; 9 PFC frames received",
        ("r0", "Ethernet0", 3): (
            "1204 PFC frames received; 6 pauses of 1430570 us (show pfc counters)"
        ),
    }


def test_files_that_are_not_read_are_listed(tmp_path: Path) -> None:
    folder = copied("terminal-record", tmp_path)
    (folder / "leaf0" / "notes.txt").write_text("all fine here\n")
    log = folder / "leaf2" / "log.txt"
    log.write_text(log.read_text().replace("Ethernet4  0  0", "Ethernet4  0"))
    done = run(str(folder))
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert f"  not read: {folder}/leaf0/notes.txt: no known kind of file" in lines
    begin = f"  not read: {log}: line 5: not a row"
    (damaged,) = (line for line in lines if line.startswith(begin))
    assert "(instead: pfcwd show stats > pfcwd; show pfc counters > pfc)" in damaged
    assert lines[0].endswith(": UNKNOWN why queues are paused")
    assert any(line.startswith(f"  missing: {log}: line 5: not a row of 8") for line in lines)
    values = json.loads(run(str(folder), "--json").stdout)
    assert [file["file"] for file in values["not_read"]] == [
        f"{folder}/leaf0/notes.txt",
        str(log),
    ]


def test_without_any_pauses_the_files_that_were_not_read_are_named(tmp_path: Path) -> None:
    folder = changed(tmp_path, "control-safe")
    (folder / "r0" / "pfc.xlsx").write_text("?")
    done = run(str(folder))
    assert done.exit_code == 2
    assert f"; not read: {folder}/r0/pfc.xlsx: no known kind of file" in done.stderr
    assert done.stderr.count("\n") == 1


def test_history_at_a_port_that_leads_nowhere_known_is_missing(tmp_path: Path) -> None:
    folder = copied("storms-come-and-go", tmp_path)
    for file in folder.glob("*/pfcwd.txt"):
        file.write_text(f"{STATS}Ethernet0:3  operational  0/0\n")
    config = folder / "leaf1" / "config_db.json"
    tables = json.loads(config.read_text())
    tables["PORT"]["Ethernet96"] = {"speed": "100000"}
    config.write_text(json.dumps(tables))
    (folder / "leaf1" / "pfcwd.txt").write_text(f"{STATS}Ethernet96:3  operational  5/5\n")
    values = json.loads(run(str(folder), "--json").stdout)
    assert values["answer"] == "not-enough"
    assert values["missing"] == ["what Ethernet96 of leaf1 leads to, whose queue 3 is paused"]
