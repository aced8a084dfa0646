"""Settings of SONiC switches: what their tables say, and what they leave open."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from knotless.base import switch_settings
from knotless.base.errors import SwitchSettingsError
from knotless.base.switch_settings import SwitchFile, SwitchSettings
from knotless.importers.fabric import TableFabric
from knotless.importers.paths import read_paths
from knotless.importers.routers.router import Router
from knotless.importers.routers.switch_settings import settings_of
from knotless.importers.switch_settings import ReadSettings, file_of
from tests.support.router_nets import leaf_spine, random_net

Tables = dict[str, dict[str, dict[str, Any]]]
POOLS: Tables = {
    "BUFFER_POOL": {
        "lossless": {"type": "ingress", "mode": "dynamic", "size": "1000000", "xoff": "200000"},
        "out": {"type": "egress", "mode": "static", "size": "2000000"},
    },
    "BUFFER_PROFILE": {
        "pg_lossless": {
            "pool": "lossless",
            "size": "2000",
            "dynamic_th": "-3",
            "xoff": "60000",
            "xon": "3000",
            "xon_offset": "2500",
        },
        "queue_lossless": {"pool": "out", "size": "0", "static_th": "2000000"},
        "queue_lossy": {"pool": "out", "size": "1500", "dynamic_th": "1"},
    },
    "BUFFER_PG": {
        "Ethernet0|3-4": {"profile": "pg_lossless"},
        "Ethernet4|3-4": {"profile": "pg_lossless"},
    },
    "BUFFER_QUEUE": {
        "Ethernet0,Ethernet4|3-4": {"profile": "queue_lossless"},
        "Ethernet0|0-2": {"profile": "queue_lossy"},
    },
    "SCHEDULER": {
        "scheduler.0": {"type": "DWRR", "weight": "14"},
        "first": {"type": "STRICT"},
    },
    "WRED_PROFILE": {
        "mark": {
            "ecn": "ecn_all",
            "wred_green_enable": "true",
            "green_min_threshold": "250000",
            "green_max_threshold": "1048576",
            "green_drop_probability": "5",
        }
    },
    "QUEUE": {
        "Ethernet0|3": {"scheduler": "scheduler.0", "wred_profile": "mark"},
        "Ethernet0|7": {"scheduler": "first"},
        "Ethernet4|3": {"scheduler": "scheduler.0", "wred_profile": "mark"},
        "Ethernet4|7": {"scheduler": "first"},
    },
    "PORT_QOS_MAP": {
        "Ethernet0": {"pfc_enable": "3,4", "pfcwd_sw_enable": "3"},
        "Ethernet4": {"pfc_enable": "3,4", "pfcwd_sw_enable": "3"},
    },
    "PFC_WD": {
        "Ethernet0,Ethernet4": {
            "action": "forward",
            "detection_time": "200",
            "restoration_time": "400",
        },
        "GLOBAL": {"POLL_INTERVAL": "100"},
    },
}
PORTS = {1: ["Ethernet0"], 2: ["Ethernet4"]}


def read(changes: Tables | None = None, ports: dict[int, list[str]] = PORTS) -> ReadSettings:
    """Return the settings of one switch; rows of ``changes`` replace others."""
    tables = {
        table: {key: dict(fields) for key, fields in rows.items()} for table, rows in POOLS.items()
    }
    for table, rows in (changes or {}).items():
        tables.setdefault(table, {}).update(rows)
    return settings_of(Router("leaf0", "leaf0", tables), ports)


def test_all_tables_become_settings() -> None:
    settings = read().settings
    assert json.loads(settings.model_dump_json(exclude_defaults=True)) == {
        "lossless": [3, 4],
        "pools": {
            "lossless": {"side": "ingress", "bytes": 992_000, "headroom_bytes": 200_000},
            "out": {"side": "egress", "bytes": 1_995_500},
        },
        "ingress": [
            {
                "priorities": [3, 4],
                "pool": "lossless",
                "reserved_bytes": 2000,
                "alpha": 0.125,
                "headroom_bytes": 60_000,
                "resume_offset_bytes": 2500,
            }
        ],
        "egress": [
            {"priorities": [3, 4], "pool": "out", "limit_bytes": 2_000_000},
            {"priorities": [0, 1, 2], "pool": "out", "reserved_bytes": 1500, "alpha": 2.0},
        ],
        "scheduler": [{"priorities": [3], "weight": 14}, {"priorities": [7], "strict": True}],
        "ecn": [{"priorities": [3], "kmin_bytes": 250_000, "kmax_bytes": 1_048_576, "pmax": 0.05}],
        "watchdog": {
            "detection_us": 200_000.0,
            "restoration_us": 400_000.0,
            "action": "forward",
            "polling_us": 100_000.0,
            "restored_by": "frames",
            "priorities": [3],
        },
        "ports": {
            "2": {"egress": [{"priorities": [3, 4], "pool": "out", "limit_bytes": 2_000_000}]}
        },
    }
    assert (read().unknown, read().losses) == ((), ())
    # Simulated and running switches have all of it, the watchdog as well.
    file, _ = file_of({"leaf0": read()})
    assert file.for_model()["watchdog"]["polling_us"] == 100_000.0


def test_a_port_has_its_own_settings_and_those_of_its_switch() -> None:
    row = {"pfc_enable": "3", "pfcwd_sw_enable": "3"}
    settings = read({"PORT_QOS_MAP": {"Ethernet4": row}}).settings
    assert [settings.of_port(port).lossless for port in (1, 2)] == [(3, 4), (3,)]
    assert settings.of_port(2).ecn == settings.of_port(1).ecn != ()


def test_headroom_is_in_the_size_only_if_the_pool_has_none() -> None:
    """The size of a Mellanox profile is xon + xoff; a Broadcom one has its headroom besides."""
    profile = {"pool": "lossless", "dynamic_th": "0", "size": "51200", "xoff": "32768"}
    pool = {"type": "ingress", "size": "1000000"}
    for xoff, reserved in (("0", 18_432), ("200000", 51_200)):
        changes = {
            "BUFFER_PROFILE": {"pg_lossless": profile},
            "BUFFER_POOL": {"lossless": {**pool, "xoff": xoff}},
        }
        (group,) = read(changes).settings.ingress or ()
        assert (group.reserved_bytes, group.headroom_bytes) == (reserved, 32_768)


@pytest.mark.parametrize(
    ("changes", "unknown"),
    [
        (
            {"BUFFER_POOL": {"lossless": {"type": "ingress"}}},
            "the size of BUFFER_POOL|lossless, and the buffers in it",
        ),
        (
            {"BUFFER_POOL": {"lossless": {"type": "ingress", "size": "7999"}}},
            "the size of BUFFER_POOL|lossless: 8000 of 7999 bytes are reserved",
        ),
        ({"BUFFER_POOL": {"out": {"size": "9"}}}, "the type of BUFFER_POOL|out"),
        (
            {"BUFFER_PG": {"Ethernet0|3-4": {"profile": "NULL"}}},
            "buffers that the switch computes, which are not in APPL_DB (Ethernet0)",
        ),
        ({"BUFFER_PG": {"Ethernet0|3-4": {"profile": "none"}}}, "BUFFER_PROFILE|none (Ethernet0)"),
        (
            {"BUFFER_PROFILE": {"pg_lossless": {"pool": "none"}}},
            "the pool of BUFFER_PROFILE|pg_lossless (Ethernet0 and 1 more)",
        ),
        (
            {"SCHEDULER": {"first": {"type": "WRR"}}},
            "the type (STRICT or DWRR) of SCHEDULER|first (Ethernet0 and 1 more)",
        ),
        (
            {"WRED_PROFILE": {"mark": {"ecn": "ecn_all"}}},
            "the thresholds and probability of WRED_PROFILE|mark (Ethernet0 and 1 more)",
        ),
        (
            {"PFC_WD": {"Ethernet0,Ethernet4": {"action": "drop"}}},
            "the detection_time of PFC_WD (Ethernet0 and 1 more)",
        ),
        (
            {"BUFFER_PORT_EGRESS_PROFILE_LIST": {"Ethernet0": {"profile_list": "queue_lossy"}}},
            "what the limits of whole ports (BUFFER_PORT_*_PROFILE_LIST) do",
        ),
        (
            {"SCHEDULER": {"scheduler.0": {"type": "DWRR", "weight": "0"}}},
            "Scheduled: weight: 0 is not at least 1",
        ),
    ],
)
def test_what_is_not_known_is_left_out_and_said(changes: Tables, unknown: str) -> None:
    assert any(text.startswith(unknown) for text in read(changes).unknown), read(changes).unknown


def test_buffers_without_a_size_are_left_out() -> None:
    settings = read({"BUFFER_POOL": {"lossless": {"type": "ingress", "mode": "dynamic"}}}).settings
    assert list(settings.pools) == ["out"]
    assert settings.ingress == ()


def test_what_the_switch_has_computed_counts() -> None:
    tables: Tables = {
        "BUFFER_POOL": {"lossless": {"type": "ingress", "mode": "dynamic"}},
        "BUFFER_POOL_TABLE": {"lossless": {"type": "ingress", "size": "500000", "xoff": "1"}},
        "BUFFER_PG": {"Ethernet0|3-4": {"profile": "NULL"}},
        "BUFFER_PG_TABLE": {"Ethernet0:3-4": {"profile": "pg_lossless"}},
    }
    assert read(tables).settings.pools["lossless"].bytes == 500_000 - 8_000
    assert read(tables).unknown == ()


@pytest.mark.parametrize("ecn", ["ecn_none", "ecn_yellow", None])
def test_wred_that_drops_lossless_packets(ecn: str | None) -> None:
    profile = {"wred_green_enable": "true", "ecn": ecn}
    losses = read({"WRED_PROFILE": {"mark": {k: v for k, v in profile.items() if v}}}).losses
    assert losses == (
        "leaf0:Ethernet0 and 1 more: queue 3 is lossless, but WRED_PROFILE|mark drops its packets"
        f" (ecn {ecn or 'ecn_none'}); set ecn to ecn_all, or remove it",
    )
    lossy = {port: {"pfc_enable": "4"} for port in ("Ethernet0", "Ethernet4")}
    changes: Tables = {"WRED_PROFILE": {"mark": dict(profile)}, "PORT_QOS_MAP": lossy}
    assert read(changes).losses == ()


HOSTILE = ["", "0", "-1", "99", "9" * 40, "٣", "²", "NULL", "none", "x" * 300, "a\nb", "1e9", "3-4"]


@pytest.mark.seeds(100)
def test_hostile_values_are_left_out(seed: int, tmp_path: Path) -> None:
    """Whatever the tables hold, what is read is possible, and can be written."""
    rng = random.Random(seed)  # noqa: S311
    tables: Tables = {}
    for table, rows in POOLS.items():
        tables[table] = {}
        for key, fields in rows.items():
            changed = {
                name: rng.choice(HOSTILE) if rng.random() < 0.3 else value
                for name, value in fields.items()
            }
            if table == "PORT_QOS_MAP":
                changed = dict(fields)  # read, and refused, before
            tables[table][rng.choice(HOSTILE) if rng.random() < 0.1 else key] = changed
    settings = settings_of(Router("leaf0", "leaf0", tables), PORTS)
    file, unknown = file_of({"leaf0": settings})
    path = tmp_path / "switch.yaml"
    switch_settings.write(path, file, unknown)
    assert switch_settings.read(path) == file


def test_a_switch_without_tables_has_no_settings() -> None:
    assert settings_of(Router("r", "r", {"PORT": {"Ethernet0": {}}}), PORTS) == ReadSettings()


def imported(folder: Path, changes: Tables, *, older: bool = False) -> TableFabric:
    """Return a leaf-spine fabric, all of whose switches have tables of buffers."""
    net = leaf_spine(2, 2)
    tables = {table: rows for table, rows in POOLS.items() if table != "PORT_QOS_MAP"}
    for router in net.routers:
        net.more[router] = {**tables, **changes}
    path = net.write(folder)
    if older:
        _in_old_syntax(path)
    fabric = read_paths([path])
    assert isinstance(fabric, TableFabric)
    return fabric


def _in_old_syntax(folder: Path) -> None:
    """Write references as ``[BUFFER_POOL|lossless]``, as releases before 202111 do."""
    tables = {
        "pool": "BUFFER_POOL",
        "profile": "BUFFER_PROFILE",
        "scheduler": "SCHEDULER",
        "wred_profile": "WRED_PROFILE",
    }
    for file in folder.rglob("config_db.json"):
        config = json.loads(file.read_text())
        for table in ("BUFFER_PROFILE", "BUFFER_PG", "BUFFER_QUEUE", "QUEUE"):
            for fields in config[table].values():
                for name in fields.keys() & tables.keys():
                    fields[name] = f"[{tables[name]}|{fields[name]}]"
        file.write_text(json.dumps(config))


def test_a_fabric_is_read_in_both_syntaxes(tmp_path: Path) -> None:
    new = imported(tmp_path / "new", {})
    old = imported(tmp_path / "old", {}, older=True)
    settings = new.switch_settings()
    assert settings == old.switch_settings()
    assert sorted(settings) == ["leaf0", "leaf1", "spine0", "spine1"]
    group = settings["leaf0"].groups[0]
    assert (group.pool, group.reserved_bytes, group.lossless) == ("lossless", 2000, True)
    assert new.switch_settings() is settings


def test_lists_of_references_are_read_in_both_syntaxes(tmp_path: Path) -> None:
    rows = ("queue_lossy,queue_lossless", "[BUFFER_PROFILE|queue_lossy],[BUFFER_PROFILE|q2]")
    for number, text in enumerate(rows):
        table = {"BUFFER_PORT_EGRESS_PROFILE_LIST": {"Ethernet0": {"profile_list": text}}}
        fabric = imported(tmp_path / str(number), table)
        assert "what the limits of whole ports" in fabric.switch_settings()["leaf0"].unknown[-1]
        (row,) = fabric.configs[0]["BUFFER_PORT_EGRESS_PROFILE_LIST"].values()
        assert row["profile_list"].startswith("queue_lossy,q")


def test_settings_of_a_fabric_are_written_and_read(tmp_path: Path) -> None:
    rows = {"BUFFER_PG": {"Ethernet0|3-4": {"profile": "NULL"}}}
    file, unknown = file_of(imported(tmp_path / "net", rows).switch_settings())
    assert file.lossless == (3, 4)
    assert unknown
    path = tmp_path / "switch.yaml"
    switch_settings.write(path, file, unknown)
    assert switch_settings.read(path) == file
    comments = [line[2:] for line in path.read_text().splitlines() if line.startswith("#")]
    assert comments == unknown


@pytest.mark.seeds(20)
def test_random_settings_are_written_and_read(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)  # noqa: S311
    net = random_net(seed)
    for router in net.routers:
        more: Tables = {}
        for table, rows in POOLS.items():
            if table != "PORT_QOS_MAP" and rng.random() < 0.8:
                more[table] = {key: dict(row) for key, row in rows.items() if rng.random() < 0.9}
                for row in more[table].values():
                    for name in list(row):
                        if rng.random() < 0.1:
                            row[name] = rng.choice(["0", "7", "70000", "", "none", "-1"])
        net.more[router] = more
    fabric = read_paths([net.write(tmp_path / "net")])
    assert isinstance(fabric, TableFabric)
    settings = fabric.switch_settings()
    file, unknown = file_of(settings)
    path = tmp_path / "switch.yaml"
    switch_settings.write(path, file, unknown)
    read_again = switch_settings.read(path)
    assert read_again == file
    for name, read_settings in settings.items():
        assert (
            SwitchSettings(
                **{
                    key: getattr(read_again.of_switch(name), key)
                    for key in SwitchSettings.model_fields
                }
            )
            == read_settings.settings
        )


def test_settings_that_are_too_long_to_be_read_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch_settings, "MAX_FILE_BYTES", 200)
    many = SwitchFile(switches={f"s{n}": SwitchSettings(lossless=(3,)) for n in range(20)})
    with pytest.raises(SwitchSettingsError, match="20 switches need more than 200"):
        switch_settings.write(tmp_path / "switch.yaml", many)
    assert not (tmp_path / "switch.yaml").exists()


def test_comments_stay_comments(tmp_path: Path) -> None:
    text = switch_settings.text_of(SwitchFile(lossless=(3,)), ["leaf0\nlossless: [4]"])
    (tmp_path / "switch.yaml").write_text(text)
    assert switch_settings.read(tmp_path / "switch.yaml").lossless == (3,)
