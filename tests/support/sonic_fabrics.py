"""CONFIG_DB of small SONiC fabrics with BGP, as minigraphs give it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Tables = dict[str, dict[str, dict[str, Any]]]
Change = Callable[[str, Tables], None]
LEAF_SPINE = [(leaf, spine) for leaf in ("leaf1", "leaf2") for spine in ("spine1", "spine2")]
NUMBERS = {"leaf1": 65_101, "leaf2": 65_102, "spine1": 65_200, "spine2": 65_200}
FOUR_LEAVES = [(f"leaf{n}", spine) for n in (1, 2, 3, 4) for spine in ("spine1", "spine2")]
FOUR_NUMBERS = {f"leaf{n}": 65_100 + n for n in (1, 2, 3, 4)} | {"spine1": 65_201, "spine2": 65_202}


def unchanged(router: str, tables: Tables) -> None:
    """Change nothing."""


def write_sonic(
    folder: Path,
    change: Change = unchanged,
    *,
    links: Sequence[tuple[str, str]] = LEAF_SPINE,
    numbers: Mapping[str, int] = NUMBERS,
) -> Path:
    """Write a fabric whose leaves have a VLAN each, with ``change`` made to the tables.

    The ports of a router are Ethernet0, Ethernet4, .. in the order of its links; returns the
    folder.
    """
    used = dict.fromkeys(numbers, 0)
    fabric = {
        router: _tables(router, number, place)
        for place, (router, number) in enumerate(numbers.items(), 1)
    }
    for number, ends in enumerate(links):
        ports = [f"Ethernet{4 * used[router]}" for router in ends]
        for side, (router, port) in enumerate(zip(ends, ports, strict=True)):
            used[router] += 1
            own, far = (f"10.0.0.{2 * number + end}" for end in (side, 1 - side))
            peer, tables = ends[1 - side], fabric[router]
            tables["PORT"][port] = {"admin_status": "up", "speed": "100000"}
            tables["INTERFACE"] |= {port: {}, f"{port}|{own}/31": {}}
            tables["BGP_NEIGHBOR"][far] = {
                **{"asn": str(numbers[peer]), "name": peer, "local_addr": own, "holdtime": "10"},
                **{"keepalive": "3", "nhopself": "0", "rrclient": "0", "admin_status": "up"},
            }
            tables["DEVICE_NEIGHBOR"][port] = {"name": peer, "port": ports[1 - side]}
    for router, tables in fabric.items():
        change(router, tables)
        (folder / router).mkdir(parents=True)
        (folder / router / "config_db.json").write_text(json.dumps(tables))
    return folder


def _tables(router: str, number: int, place: int) -> Tables:
    is_leaf = router.startswith("leaf")
    metadata = {
        "hostname": router,
        "bgp_asn": str(number),
        "type": "ToRRouter" if is_leaf else "LeafRouter",
        "default_bgp_status": "up",
        "docker_routing_config_mode": "separated",
    }
    tables: Tables = {
        "DEVICE_METADATA": {"localhost": metadata},
        "LOOPBACK_INTERFACE": {"Loopback0": {}, f"Loopback0|10.1.0.{place}/32": {}},
        **{name: {} for name in ("PORT", "INTERFACE", "BGP_NEIGHBOR", "DEVICE_NEIGHBOR")},
    }
    if is_leaf:
        tables["PORT"]["Ethernet400"] = {"admin_status": "up"}
        tables["VLAN"] = {"Vlan10": {"vlanid": "10"}}
        tables["VLAN_MEMBER"] = {"Vlan10|Ethernet400": {"tagging_mode": "untagged"}}
        tables["VLAN_INTERFACE"] = {"Vlan10": {}, f"Vlan10|192.168.{place}.1/24": {}}
    return tables
