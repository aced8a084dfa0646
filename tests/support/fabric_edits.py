"""Random edits of the files of SONiC switches: what operators push, and what goes wrong."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.router_dumps import HOST_PORT, RouterNet
from tests.support.router_nets import clos, leaf_spine, random_net


def buffered(net: RouterNet) -> RouterNet:
    """Give all ports of a fabric buffers: with headroom and a reserve, from one pool."""
    for router in net.routes:
        ports = [*net.ports(router), HOST_PORT]
        net.more.setdefault(router, {}).update(
            {
                "BUFFER_POOL": {"in": {"type": "ingress", "mode": "dynamic", "size": "9000000"}},
                "BUFFER_PROFILE": {
                    "lossless": {"pool": "in", "size": "9416", "xoff": "100000", "dynamic_th": "0"},
                    "bare": {"pool": "in", "size": "0", "xoff": "100000", "dynamic_th": "0"},
                },
                "BUFFER_PG": {
                    f"{port}|{groups}": {"profile": profile}
                    for port in ports
                    for groups, profile in (("0", "bare"), ("3-4", "lossless"))
                },
                "CABLE_LENGTH": {"AZURE": dict.fromkeys(ports, "5m")},
                "SYSLOG_SERVER": {"10.0.0.8": {}},
            }
        )
    return net


def nets(seed: int) -> RouterNet:
    """Return a fabric of one of several kinds; some have cycles, shared prefixes or LAGs."""
    kinds: list[Callable[[], RouterNet]] = [
        lambda: buffered(clos(2, 2, 2, 2)),
        lambda: buffered(leaf_spine(3, 2)),
        lambda: clos(2, 2, 2, 1),
        lambda: random_net(seed),
    ]
    return kinds[seed % len(kinds)]()


def write_files(net: RouterNet, folder: Path) -> Path:
    """Write the configuration, the routes and the neighbours of each switch to files."""
    for router in net.routers:
        directory = folder / router
        directory.mkdir(parents=True)
        values = {
            "config_db.json": net.config(router),
            "appl_db.json": net.appl_routes(router),
            "lldp.json": net.lldp_json(router),
        }
        for name, value in values.items():
            (directory / name).write_text(json.dumps(value))
    return folder


class Folder:
    """The files of a fabric, of which one is edited."""

    def __init__(self, path: Path, rng: random.Random) -> None:
        self.path, self.rng = path, rng
        self.switches = sorted(entry for entry in path.iterdir() if entry.is_dir())

    def any_switch(self) -> Path:
        """Return the folder of a switch."""
        return self.rng.choice(self.switches)

    def any_file(self) -> Path:
        """Return any file."""
        return self.rng.choice(sorted(file for file in self.path.rglob("*") if file.is_file()))

    def edit(self, file: Path, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the JSON value in a file."""
        try:
            value = json.loads(file.read_text())
        except ValueError:
            return  # an earlier edit has damaged it
        change(value)
        file.write_text(json.dumps(value))

    def routes(self, switch: Path, change: Callable[[dict[str, Any], str], object]) -> None:
        """Change one route of a switch that has several."""

        def changed(tables: dict[str, Any]) -> None:
            keys = [key for key in tables if key.startswith("ROUTE_TABLE:")]
            if keys:
                change(tables, self.rng.choice(keys))

        self.edit(switch / "appl_db.json", changed)


def _cabled(switch: Path) -> list[str]:
    heard = json.loads((switch / "lldp.json").read_text())["lldp"]["interface"]
    return sorted(port for one in (heard if isinstance(heard, list) else [heard]) for port in one)


def _hops(fields: dict[str, str], ports: list[str]) -> None:
    fields.pop("blackhole", None)
    fields["ifname"] = ",".join(ports)
    fields["nexthop"] = ",".join(f"169.254.0.{number}" for number in range(1, len(ports) + 1))


def next_hop_changed(folder: Folder) -> None:
    """Send packets for a network out of another port."""
    switch = folder.any_switch()
    port = folder.rng.choice(_cabled(switch))
    folder.routes(switch, lambda tables, key: _hops(tables[key], [port]))


def group_changed(folder: Folder) -> None:
    """Send packets for several networks out of other ports."""
    switch = folder.any_switch()
    ports = _cabled(switch)
    used = folder.rng.sample(ports, folder.rng.randint(1, len(ports)))

    def changed(tables: dict[str, Any]) -> None:
        for key, fields in tables.items():
            if key.startswith("ROUTE_TABLE:") and folder.rng.random() < 0.5:
                _hops(fields, used)

    folder.edit(switch / "appl_db.json", changed)


def route_withdrawn(folder: Folder) -> None:
    """Take a route away."""
    folder.routes(folder.any_switch(), lambda tables, key: tables.pop(key))


def route_added(folder: Folder) -> None:
    """Add a route to a network that perhaps nobody else knows."""
    switch = folder.any_switch()
    port = folder.rng.choice(_cabled(switch))
    prefix = folder.rng.choice(["10.77.0.0/24", "0.0.0.0/0", "10.0.0.0/16", "10.1.1.128/25"])
    folder.edit(
        switch / "appl_db.json",
        lambda tables: _hops(tables.setdefault(f"ROUTE_TABLE:{prefix}", {}), [port]),
    )


def member_removed(folder: Folder) -> None:
    """Take a next hop away from a route that has several."""

    def changed(tables: dict[str, Any]) -> None:
        several = [key for key, fields in tables.items() if "," in fields.get("ifname", "")]
        if several:
            fields = tables[folder.rng.choice(several)]
            ports = fields["ifname"].split(",")
            ports.pop(folder.rng.randrange(len(ports)))
            _hops(fields, ports)

    folder.edit(folder.any_switch() / "appl_db.json", changed)


def loop_made(folder: Folder) -> None:
    """Send packets for a network back to where they come from."""
    switch = folder.any_switch()
    ports = _cabled(switch)

    def changed(tables: dict[str, Any], key: str) -> None:
        used = tables[key].get("ifname", "").split(",")
        _hops(tables[key], [port for port in ports if port not in used] or ports)

    folder.routes(switch, changed)


def profile_changed(folder: Folder) -> None:
    """Give a buffer profile another headroom, or no reserve."""

    def changed(tables: dict[str, Any]) -> None:
        profile = tables.get("BUFFER_PROFILE", {}).get("lossless")
        if profile is not None:
            field = folder.rng.choice(["xoff", "size"])
            profile[field] = folder.rng.choice(["0", "9", "9416", "120000"])

    folder.edit(folder.any_switch() / "config_db.json", changed)


def pfc_changed(folder: Folder) -> None:
    """Enable PFC for other priorities at a port."""

    def changed(tables: dict[str, Any]) -> None:
        ports = tables.get("PORT_QOS_MAP", {})
        if ports:
            fields = ports[folder.rng.choice(sorted(ports))]
            fields["pfc_enable"] = folder.rng.choice(["", "3", "4", "3,4", "2,3,4"])

    folder.edit(folder.any_switch() / "config_db.json", changed)


def map_changed(folder: Folder) -> None:
    """Give a DSCP another class."""

    def changed(tables: dict[str, Any]) -> None:
        maps = tables.get("DSCP_TO_TC_MAP", {})
        if maps:
            of_map = maps[folder.rng.choice(sorted(maps))]
            of_map[str(folder.rng.choice([0, 3, 4, 26]))] = str(folder.rng.choice([1, 3, 4]))

    folder.edit(folder.any_switch() / "config_db.json", changed)


def other_table_changed(folder: Folder) -> None:
    """Change a table that does not move packets, or add one that nobody knows."""
    table, key = folder.rng.choice(
        [("DEVICE_METADATA", "localhost"), ("SYSLOG_SERVER", "10.0.0.9"), ("STRANGE", "x")]
    )
    folder.edit(
        folder.any_switch() / "config_db.json",
        lambda tables: tables.setdefault(table, {}).setdefault(key, {}).update(a="b"),
    )


def cable_changed(folder: Folder) -> None:
    """Let a port hear the neighbour of another port, or nobody."""

    def changed(value: dict[str, Any]) -> None:
        heard = value["lldp"]["interface"]
        if isinstance(heard, list) and len(heard) > 1:
            one, other = folder.rng.sample(range(len(heard)), 2)
            if folder.rng.random() < 0.5:
                heard.pop(one)
            else:
                (first,), (second,) = heard[one], heard[other]
                heard[one], heard[other] = (
                    {first: heard[other][second]},
                    {second: heard[one][first]},
                )

    folder.edit(folder.any_switch() / "lldp.json", changed)


def emptied(folder: Folder) -> None:
    """Empty a file."""
    folder.any_file().write_bytes(b"")


def damaged(folder: Folder) -> None:
    """Cut a file off, or change one of its bytes."""
    file = folder.any_file()
    data = bytearray(file.read_bytes())
    if not data:
        return
    place = folder.rng.randrange(len(data))
    if folder.rng.random() < 0.5:
        del data[place:]
    else:
        data[place] = folder.rng.choice(b'x"{}[],:\xff0')
    file.write_bytes(data)


def rewritten(folder: Folder) -> None:
    """Write a file in another form that means the same, in another order perhaps."""
    file = folder.any_file()
    try:
        value = json.loads(file.read_bytes())
    except ValueError:
        return
    file.write_text(json.dumps(value, indent=1, sort_keys=folder.rng.random() < 0.5))


def touched(folder: Folder) -> None:
    """Write a file anew with the content that it has."""
    file = folder.any_file()
    file.write_bytes(file.read_bytes())


def removed(folder: Folder) -> None:
    """Remove a file."""
    folder.any_file().unlink()


def renamed(folder: Folder) -> None:
    """Rename a file, or the folder of a switch."""
    if folder.rng.random() < 0.5:
        file = folder.any_file()
        file.rename(file.with_name(f"other-{file.name}"))
    else:
        switch = folder.any_switch()
        switch.rename(switch.with_name(f"other-{switch.name}"))


def added(folder: Folder) -> None:
    """Add a file: one that nobody knows, a copy, or another switch's."""
    switch = folder.any_switch()
    match folder.rng.randrange(3):
        case 0:
            (switch / "notes.txt").write_text("nothing that is read\n")
        case 1:
            file = folder.any_file()
            shutil.copy(file, file.with_name(f"copy-{file.name}"))
        case _:
            shutil.copytree(switch, folder.path / f"second-{switch.name}")


EDITS: tuple[Callable[[Folder], None], ...] = (
    next_hop_changed,
    group_changed,
    route_withdrawn,
    route_added,
    member_removed,
    loop_made,
    profile_changed,
    pfc_changed,
    map_changed,
    other_table_changed,
    cable_changed,
    emptied,
    damaged,
    rewritten,
    touched,
    removed,
    renamed,
    added,
)
