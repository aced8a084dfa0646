"""SONiC techsupport archives: the verdict of the files in them, and hostile archives."""

from __future__ import annotations

import gzip
import io
import json
import re
import resource
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.base import archives
from knotless.cli.main import main
from knotless.importers.paths import read_paths
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.classical_deadlocks import bounce
from tests.support.router_dumps import RouterNet, plain_qos
from tests.support.router_nets import leaf_spine, shortest_paths
from tests.support.techsupports import files_of, tar_of, write_techsupports


def judged(*paths: Path) -> ImportedVerdict:
    return verdict_of_imported(read_paths(paths))


def complaint(path: Path) -> str:
    done = CliRunner(mix_stderr=False).invoke(main, ["check", str(path)], prog_name="knotless")
    assert done.exit_code == 2, done.output
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 600
    return done.stderr


def archive(folder: Path, data: bytes) -> Path:
    path = folder / "dump.tar.gz"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("safe", [True, False])
def test_archives_have_the_verdict_of_their_files(safe: bool, tmp_path: Path) -> None:
    net = leaf_spine(3, 2) if safe else bounce()
    plain = judged(net.write(tmp_path / "plain" / "fabric"))
    folder = write_techsupports(net, tmp_path / "packed" / "fabric")
    packed = judged(folder)
    tables = "tables that are not interpreted, since they neither forward, remark, buffer nor pause"
    assert packed.notes == [f"{tables}: LLDP_LOC_CHASSIS, PORT_TABLE", *plain.notes]
    assert replace(packed, notes=plain.notes) == plain
    assert packed.acyclic is safe
    assert judged(*sorted(folder.iterdir())).cycle == plain.cycle


def test_unpacked_archives_and_an_archive_of_a_folder(tmp_path: Path) -> None:
    net = bounce()
    for router in net.routers:
        for name, data in files_of(net, router).items():
            file = tmp_path / "unpacked" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    of_plain = judged(net.write(tmp_path / "plain"))
    assert judged(tmp_path / "unpacked").cycle == of_plain.cycle
    files = {
        str(file.relative_to(tmp_path)): file.read_bytes()
        for file in (tmp_path / "plain").rglob("*.json")
    }
    for kind in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        long_names = {f"{'folder/' * 40}{name}": data for name, data in files.items()}
        used = files if kind == tarfile.USTAR_FORMAT else long_names
        assert judged(archive(tmp_path, tar_of(used, kind))).cycle == of_plain.cycle


def test_the_running_configuration_counts(tmp_path: Path) -> None:
    """If it is missing, the saved one, which has no priorities here, is taken."""
    net = leaf_spine(2, 1)
    files = {name: data for router in net.routers for name, data in files_of(net, router).items()}
    assert judged(archive(tmp_path, tar_of(files))).missing == []
    saved = {name: data for name, data in files.items() if not name.endswith("CONFIG_DB.json")}
    notes = judged(archive(tmp_path, tar_of(saved))).notes
    assert any("all links are taken to PAUSE" in note for note in notes)


def test_a_single_packed_file(tmp_path: Path) -> None:
    folder = leaf_spine(2, 1).write(tmp_path)
    file = folder / "leaf0" / "config_db.json"
    (folder / "leaf0" / "config_db.json.gz").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    assert judged(folder).missing == []


@pytest.mark.parametrize("running", [False, True])
def test_several_asics(running: bool, tmp_path: Path) -> None:
    """The ASICs of a device, joined by internal ports, are switches of their own.

    Their configurations are in a techsupport archive, or printed by show runningconfiguration all.
    """
    net = RouterNet(
        [
            (("chassis-asic0", "Ethernet0"), ("spine", "Ethernet0")),
            (("chassis-asic1", "Ethernet32"), ("spine", "Ethernet4")),
            (("chassis-asic0", "Ethernet-BP0"), ("chassis-asic1", "Ethernet-BP8")),
        ],
        hosts={(f"chassis-asic{n}", "Vlan10"): f"10.{n}.0.1/24" for n in (0, 1)},
        routes={name: {} for name in ("chassis-asic0", "chassis-asic1", "spine")},
    )
    shortest_paths(net)
    net.qos = {router: plain_qos(net.ports(router)) for router in net.routers}
    expected = judged(net.write(tmp_path / "plain"))
    base = "sonic_dump_chassis_20240131_120000"
    host = {"DEVICE_METADATA": {"localhost": {"hostname": "chassis"}}}
    files = {f"{base}/dump/CONFIG_DB.json": json.dumps(host).encode()}
    configs: dict[str, object] = {"localhost": host}
    chassis = tmp_path / "packed" / "chassis"
    for number in (0, 1):
        config = net.config(f"chassis-asic{number}")
        own = {"hostname": "chassis", "asic_name": f"asic{number}"}
        config["DEVICE_METADATA"]["localhost"] |= own
        config["PORT"][f"Ethernet-BP{8 * number}"] |= {
            "role": "Int",
            "asic_port_name": f"Eth9-ASIC{number}",
            "description": f"ASIC{1 - number}:Eth9-ASIC{1 - number}",
        }
        appl = net.appl_routes(f"chassis-asic{number}")
        heard = net.lldp_appl(f"chassis-asic{number}")
        appl |= {key: row for key, row in heard.items() if "-BP" not in key}
        files[f"{base}/dump/CONFIG_DB.json.{number}"] = json.dumps(config).encode()
        files[f"{base}/dump/APPL_DB.json.{number}"] = json.dumps(appl).encode()
        configs[f"asic{number}"] = {**config, "bgpraw": "router bgp 65000\n"}
        if running:
            (chassis / f"asic{number}").mkdir(parents=True)
            (chassis / f"asic{number}" / "appl.json").write_text(json.dumps(appl))
    folder = tmp_path / "packed"
    (folder / "spine").mkdir(parents=True)
    if running:
        (chassis / "running.json").write_text(json.dumps(configs))
    else:
        archive(folder, tar_of(files))
    for file in (tmp_path / "plain" / "spine").iterdir():
        text = re.sub(r'"chassis-asic\d"', '"chassis"', file.read_text())
        text = re.sub(r'"Eth\d/1"', '"an alias"', text)  # those of a device are distinct
        (folder / "spine" / file.name).write_text(text)
    verdict = judged(folder)
    assert expected.acyclic is True
    if running:
        assert verdict.notes.pop(0).endswith(" bgpraw")
    assert replace(verdict, fabric="plain") == expected


def test_a_cut_off_archive(tmp_path: Path) -> None:
    whole = gzip.compress(tar_of(files_of(leaf_spine(2, 1), "leaf0")))
    for kept in (len(whole) - 1, len(whole) // 2, 12):
        assert "cut off" in complaint(archive(tmp_path, whole[:kept]))
    tar = tar_of(files_of(leaf_spine(2, 1), "leaf0"))
    assert "cut off" in complaint(archive(tmp_path, tar[: len(tar) // 1024 * 512]))


def test_a_damaged_archive(tmp_path: Path) -> None:
    tar = bytearray(tar_of(files_of(leaf_spine(2, 1), "leaf0")))
    second = 512 * 2
    tar[second + 10] ^= 1
    assert "damaged at byte 1024" in complaint(archive(tmp_path, bytes(tar)))
    packed = bytearray(gzip.compress(bytes(tar)))
    packed[len(packed) // 2] ^= 0x40
    assert "damaged" in complaint(archive(tmp_path, bytes(packed)))


@pytest.mark.parametrize("name", ["../../etc/cron.d/x", "/etc/cron.d/x", "a/../../x"])
def test_members_outside_of_the_archive(name: str, tmp_path: Path) -> None:
    assert "would be outside" in complaint(archive(tmp_path, tar_of({name: b"{}"})))


def test_links_are_not_followed(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind in (("a", tarfile.SYMTYPE), ("b", tarfile.LNKTYPE), ("c", tarfile.CHRTYPE)):
            header = tarfile.TarInfo(f"leaf9/{name}.json")
            header.type, header.linkname = kind, "/etc/passwd"
            tar.addfile(header)
    leaf_spine(2, 1).write(tmp_path)
    verdict = judged(archive(tmp_path, out.getvalue()), *sorted(tmp_path.glob("*[0-9]")))
    assert [text.rpartition("/")[2] for text in verdict.ignored] == [
        f"{name}.json" for name in "abc"
    ]
    assert {file["reason"] for file in verdict.not_read} == {"not a regular file"}


def test_an_archive_in_an_archive_is_not_read(tmp_path: Path) -> None:
    inner = gzip.compress(tar_of({"x": b"{}"}))
    assert "is packed again" in complaint(archive(tmp_path, tar_of({"all.tar.gz": inner})))


def test_archives_that_unpack_to_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gigabyte of zeros takes a megabyte on disk."""
    zeros = gzip.compress(bytes(1 << 20)) * 1024
    packed = archive(tmp_path, zeros)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "unpacks to more than 268435456 bytes" in complaint(packed)
    header = tarfile.TarInfo("leaf0/config_db.json")
    header.size = 1 << 30
    head = header.tobuf()
    assert "has 1073741824 bytes" in complaint(archive(tmp_path, gzip.compress(head)))
    header.type = tarfile.XHDTYPE
    message = complaint(archive(tmp_path, gzip.compress(header.tobuf()) + zeros))
    assert "a header of 1073741824 bytes" in message
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert used < 700 << 10  # KiB: at most the limit of a file, twice
    monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 10 << 20)
    skipped = tarfile.TarInfo("sonic_dump_x_1/log/syslog")
    skipped.size = 9 << 20
    twice = gzip.compress(skipped.tobuf()) + gzip.compress(bytes(9 << 20))
    assert "unpacks to more than 0 GiB" in complaint(archive(tmp_path, twice * 2))
