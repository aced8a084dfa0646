"""SONiC techsupport archives of generated fabrics, as generate_dump makes them."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.router_dumps import RouterNet


def redis(database: Mapping[str, Any], mark: str) -> str:
    """Return a database as ``sonic-db-dump -y`` prints it."""
    flat = {
        f"{table}{mark}{key}" if mark else table: row
        for table, rows in database.items()
        for key, row in (rows.items() if mark else [("", rows)])
    }
    return json.dumps(
        {
            key: {"expireat": 1700000000.0, "ttl": -0.001, "type": "hash", "value": row}
            for key, row in flat.items()
        },
        indent=2,
    )


def files_of(net: RouterNet, router: str) -> dict[str, bytes]:
    """Return the files of a techsupport by name; its logs and core files are no state."""
    base = f"sonic_dump_{router}_20240131_120000"
    config = net.config(router)
    appl = {**net.appl_routes(router), **net.lldp_appl(router)}
    appl["PORT_TABLE:PortConfigDone"] = {"count": "8"}
    appl["LLDP_LOC_CHASSIS"] = {"lldp_loc_sys_name": router}
    texts = {
        "generate_dump": "#!/bin/bash\n",
        "dump/CONFIG_DB.json": redis(config, "|"),
        "dump/APPL_DB.json": redis(appl, ""),
        "dump/ASIC_DB.json": '{"ASIC_STATE:SAI_OBJECT_TYPE_PORT:oid:0x1": ',
        "dump/bridge.fdb": "33:33:00:00:00:01 dev eth0 self permanent\n",
        "dump/lldpctl": "not read\n",
        "etc/sonic/config_db.json": json.dumps({**config, "PORT_QOS_MAP": {}}),
    }
    files = {f"{base}/{name}": text.encode() for name, text in texts.items()}
    files[f"{base}/log/syslog.1.gz"] = gzip.compress(b"Jan 31 12:00:00 \xff\xfe\n" * 1000)
    files[f"{base}/core/" + "orchagent." * 12 + "core.gz"] = gzip.compress(bytes(100_000))
    return files


def tar_of(files: Mapping[str, bytes], kind: int = tarfile.GNU_FORMAT) -> bytes:
    """Return a tar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as archive:
        for name, data in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    return out.getvalue()


def write_techsupports(net: RouterNet, folder: Path) -> Path:
    """Write an archive for each router."""
    folder.mkdir(parents=True, exist_ok=True)
    for router in net.routers:
        packed = gzip.compress(tar_of(files_of(net, router)), 1, mtime=0)
        (folder / f"sonic_dump_{router}_20240131_120000.tar.gz").write_bytes(packed)
    return folder
