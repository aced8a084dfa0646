"""Damaged and hostile files of other fabrics: a verdict or one line, and exit status 2."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.imported import verdict_of_imported
from tests.support.infiniband_dumps import of_plan
from tests.support.linux_dumps import write_linux
from tests.support.router_nets import leaf_spine


def complaint(*words: str) -> str:
    """Run a check that is to be refused; returns the one line."""
    done = CliRunner(mix_stderr=False).invoke(main, ["check", *words], prog_name="knotless")
    assert done.exit_code == 2, done.output
    assert done.stderr.count("\n") == 1
    return done.stderr


def infiniband(folder: Path) -> Path:
    subnet = of_plan(make_plan(load("ring,3"), "updown"))
    assert subnet is not None
    return subnet.write(folder)


@pytest.mark.parametrize("name", ["ibnetdiscover.txt", "opensm-lfts.dump", "opensm-sl2vl.dump"])
def test_what_is_no_ordinary_file(name: str, tmp_path: Path) -> None:
    folder = infiniband(tmp_path)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert "it is a pipe, not a file" in complaint(str(folder))
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    assert "it is a device, not a file" in complaint(str(folder))
    (folder / name).unlink()
    with (folder / name).open("wb") as file:
        file.truncate(1 << 30)
    assert "has 1073741824 bytes, at most" in complaint(str(folder))


@pytest.mark.parametrize("coding", ["utf-16", "latin-1"])
def test_other_encodings(coding: str, tmp_path: Path) -> None:
    file = infiniband(tmp_path) / "ibnetdiscover.txt"
    file.write_bytes(file.read_text().replace("h1", "hé").encode(coding))
    assert "ibnetdiscover.txt: cannot be read: not UTF-8 text" in complaint(str(tmp_path))


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    folder = leaf_spine(2, 1).write(tmp_path)
    for file in folder.rglob("*.json"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert verdict_of_imported(read_paths([folder])).acyclic is True


def test_what_no_reader_recognises(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert "no file of a known kind in it; known are FRR" in complaint(str(tmp_path))
    assert "notes.txt: no known kind of file" in complaint(str(tmp_path / "notes.txt"))
    assert "cannot be read: No such file" in complaint(str(tmp_path / "nothing"))
    folder = infiniband(tmp_path / "ib")
    assert "notes.txt: no known kind" in complaint(str(folder), str(tmp_path / "notes.txt"))
    leaf_spine(2, 1).write(tmp_path / "routers")
    message = complaint(str(folder), str(tmp_path / "routers"))
    assert "files of different fabrics: infiniband and routers" in message
    (folder / "ibnetdiscover.txt").unlink()
    assert "one output of ibnetdiscover is needed" in complaint(str(folder))
    message = complaint(str(folder), "--flow-control", "pause")
    assert "the flow control of" in message


def _set(values: dict[str, Any], *keys: str, to: object) -> None:
    for key in keys[:-1]:
        values = values[key]
    values[keys[-1]] = to


@pytest.mark.parametrize(
    ("keys", "value", "says"),
    [
        (("DSCP_TO_TC_MAP", "AZURE", "3"), "99", "'3': '99' is out of range"),
        (("DSCP_TO_TC_MAP", "AZURE", "64"), "1", "'64': '1' is out of range"),
        (("PORT_QOS_MAP", "Ethernet0", "pfc_enable"), "8", "must list priorities 0 to 7"),
        (("PORT_QOS_MAP", "Ethernet0", "pfc_enable"), "3;4", "must list priorities 0 to 7"),
        (("VLAN_INTERFACE",), {"Vlan10|10.0.0.1/40": {}}, "is not a prefix such as"),
    ],
)
def test_impossible_values(keys: tuple[str, ...], value: object, says: str, tmp_path: Path) -> None:
    folder = leaf_spine(2, 1).write(tmp_path)
    file = folder / "leaf1" / "config_db.json"
    values = json.loads(file.read_text())
    _set(values, *keys, to=value)
    file.write_text(json.dumps(values))
    assert says in complaint(str(folder))


@pytest.mark.parametrize("value", [None, 8, [8]])
def test_impossible_addresses_of_linux(value: object, tmp_path: Path) -> None:
    folder = write_linux(leaf_spine(2, 1), tmp_path)
    file = folder / "leaf1" / "addr"
    devices = json.loads(file.read_text())
    devices[-1]["addr_info"] = value
    file.write_text(json.dumps(devices))
    verdict = verdict_of_imported(read_paths([folder]))
    assert verdict.acyclic is None
    assert any("addr_info must be a list of objects" in text for text in verdict.missing)
    assert "addr_info must be a list of objects" in complaint(str(file))


def test_addresses_that_occur_twice(tmp_path: Path) -> None:
    file = infiniband(tmp_path) / "ibnetdiscover.txt"
    file.write_text(file.read_text().replace("lid 2 lmc 0", "lid 1 lmc 0"))
    assert "LID 1 belongs to two ports" in complaint(str(tmp_path))


def test_a_fabric_that_does_not_fit_into_memory(tmp_path: Path) -> None:
    folder = leaf_spine(2, 1).write(tmp_path)
    file = folder / "leaf1" / "config_db.json"
    values = json.loads(file.read_text())
    values["VLAN_INTERFACE"] = {
        f"Vlan{n}|10.{n >> 14}.{n >> 6 & 255}.{n % 64 * 4}/30": {} for n in range(100_000)
    }
    file.write_text(json.dumps(values))
    message = complaint(str(folder))
    assert "this fabric takes about" in message


def test_deep_nesting_and_strange_numbers(tmp_path: Path) -> None:
    file = tmp_path / "config_db.json"
    file.write_text('{"PORT":' + '{"a":' * 200_000 + "1" + "}" * 200_001)
    assert "not JSON: nested too deeply" in complaint(str(tmp_path))
    file.write_text('{"PORT": {"Ethernet0": {"index": NaN}}}')
    assert "not JSON: NaN is not a number" in complaint(str(tmp_path))
    file.write_text('{"PORT": {"Ethernet0": {"index": ' + "9" * 5000 + "}}}")
    assert "not JSON" in complaint(str(tmp_path))
