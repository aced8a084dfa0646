"""Changes of CONFIG_DB of SONiC switches as JSON patches (RFC 6902) for ``config apply-patch``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from knotless.importers.fabric import Config, TableFabric
from knotless.importers.reactions import rises
from knotless.importers.sonic.buffer_tables import ports_and_numbers

Op = dict[str, object]
_USES = {
    "dscp_to_tc_map": "DSCP_TO_TC_MAP",
    "tc_to_queue_map": "TC_TO_QUEUE_MAP",
    "tc_to_pg_map": "TC_TO_PRIORITY_GROUP_MAP",
    "pfc_to_queue_map": "MAP_PFC_PRIORITY_TO_QUEUE",
    "tc_to_dscp_map": "TC_TO_DSCP_MAP",
}
DEFAULT_CLASS = 0
"""The class of packets that enter by a port without a map."""


@dataclass
class SwitchPatch:
    """The patch of one switch; ``config`` is its CONFIG_DB."""

    config: Config
    ops: list[Op] = field(default_factory=list)
    _tables: set[str] = field(default_factory=set)

    def put(self, table: str, key: str, value: Mapping[str, str]) -> None:
        """Add or replace a row."""
        if table not in self.config and table not in self._tables:
            self._tables.add(table)
            self.ops.append({"op": "add", "path": f"/{table}", "value": {}})
        path = f"/{table}/{key.replace('~', '~0').replace('/', '~1')}"
        self.ops.append({"op": "add", "path": path, "value": dict(value)})

    def put_field(self, table: str, key: str, name: str, value: str) -> None:
        """Add or replace a field of a row that exists."""
        path = f"/{table}/{key.replace('~', '~0').replace('/', '~1')}/{name}"
        self.ops.append({"op": "add", "path": path, "value": value})

    def port(self, port: str) -> dict[str, str]:
        """Return the QoS settings of a port."""
        rows = self.config.get("PORT_QOS_MAP", {})
        listed = next((row for key, row in rows.items() if port in key.split(",")), {})
        return {**rows.get("global", {}), **listed}

    @property
    def ports(self) -> set[str]:
        """The ports with settings of their own."""
        keys = self.config.get("PORT_QOS_MAP", {})
        return {port for key in keys for port in key.split(",")} - {"global"}

    def queue_maps(self, ports: Iterable[str]) -> set[str]:
        """Return the names of the maps from class to queue that ports use."""
        return {self.port(port).get("tc_to_queue_map", "") for port in ports} - {""}

    def map(self, port: str, use: str) -> dict[str, str]:
        """Return the map that a port uses."""
        return dict(self.config.get(_USES[use], {}).get(self.port(port).get(use, ""), {}))

    def use(self, port: str, **settings: str) -> None:
        """Change settings of a port."""
        if port in self.config.get("PORT_QOS_MAP", {}):
            for name, value in settings.items():
                self.put_field("PORT_QOS_MAP", port, name, value)
        else:
            self.put("PORT_QOS_MAP", port, {**self.port(port), **settings})

    def enabled(self, port: str) -> set[int]:
        """Return the priorities for which a port has PFC."""
        return {int(text) for text in self.port(port).get("pfc_enable", "").split(",") if text}

    @property
    def text(self) -> str:
        """The patch as text."""
        return json.dumps(self.ops, indent=1) + "\n"


def without_pfc_patch(
    imported: TableFabric, links: Iterable[tuple[int, int]]
) -> dict[str, SwitchPatch]:
    """Return the patches that disable PFC on links, (channel, priority), at both ends."""
    patches: dict[str, SwitchPatch] = {}
    off: dict[tuple[int, int], set[int]] = {}
    channels = imported.channels
    for channel, priority in links:
        for direction in (channel, int(channels.reverse[channel])):
            end = (int(channels.tail[direction]), int(channels.out_port[direction]))
            off.setdefault(end, set()).add(priority)
    for (switch, port), priorities in sorted(off.items()):
        patch = patch_of(imported, patches, switch)
        name = channels.port_name(switch, port)
        remaining = sorted(patch.enabled(name) - priorities)
        patch.use(name, pfc_enable=",".join(map(str, remaining)))
    return patches


def tunnel_patch(imported: TableFabric, moved: Mapping[int, int]) -> dict[str, SwitchPatch]:
    """Return the patches that give packets in tunnels the priorities ``moved``."""
    patches = enabling(imported, moved)
    for switch, config in enumerate(imported.configs):
        rows = config.get("TUNNEL", {})
        ports = linked_ports(imported, switch)
        if not rows or not ports:
            continue
        patch, port = patch_of(imported, patches, switch), ports[0][0]
        classes = moving_classes(patch, port, moved)
        dscps = {**dscp_of_class(patch, port), **{tc: moved[p] for tc, p in classes.items()}}
        # What hosts send in the new priorities becomes lossy in tunnels.
        lossy = {str(new_priority): "0" for new_priority in moved.values()}
        queues = {**patch.map(port, "tc_to_queue_map"), **lossy, **_text(dscps, classes)}
        name = "KNOTLESS_TUNNEL"
        patch.put("TC_TO_DSCP_MAP", name, {str(tc): str(dscp) for tc, dscp in dscps.items()})
        patch.put("TC_TO_QUEUE_MAP", name, queues)
        patch.put("DSCP_TO_TC_MAP", name, {str(moved[p]): str(tc) for tc, p in classes.items()})
        patch.put(
            "TC_TO_PRIORITY_GROUP_MAP",
            name,
            {**patch.map(port, "tc_to_pg_map"), **lossy, **_text(dscps, classes)},
        )
        for tunnel in rows:
            for use in ("encap_tc_to_dscp_map", "encap_tc_to_queue_map"):
                patch.put_field("TUNNEL", tunnel, use, name)
            for use in ("decap_dscp_to_tc_map", "decap_tc_to_pg_map"):
                patch.put_field("TUNNEL", tunnel, use, name)
            patch.put_field("TUNNEL", tunnel, "dscp_mode", "pipe")
    return patches


def patch_of(imported: TableFabric, patches: dict[str, SwitchPatch], switch: int) -> SwitchPatch:
    """Return the patch of a switch; a new one is added to those ``patches``."""
    return patches.setdefault(
        imported.channels.names[switch], SwitchPatch(imported.configs[switch])
    )


def linked_ports(imported: TableFabric, switch: int) -> list[tuple[str, int]]:
    """Return the ports of a switch that lead to other switches: 1 up, -1 down, 0 neither."""
    channels, rise = imported.channels, rises(imported)
    return [
        (channels.port_name(switch, int(channels.out_port[channel])), int(rise[channel]))
        for channel in range(len(channels))
        if channels.tail[channel] == switch
    ]


def enabling(imported: TableFabric, moved: Mapping[int, int]) -> dict[str, SwitchPatch]:
    """Return the patches that make the new priorities lossless where the former ones are."""
    patches: dict[str, SwitchPatch] = {}
    for switch in range(len(imported.configs)):
        patch = patch_of(imported, patches, switch)
        named: set[tuple[str, str]] = set()
        for port, _ in linked_ports(imported, switch):
            enabled = patch.enabled(port)
            more = {new_priority for former, new_priority in moved.items() if former in enabled}
            patch.use(port, pfc_enable=",".join(map(str, sorted(enabled | more))))
            named |= {
                (t, patch.port(port)[use]) for use, t in _USES.items() if use in patch.port(port)
            }
            for former, new_priority in moved.items():
                _copy_buffer(patch, port, former, new_priority)
        for table, name in sorted(named):
            for new_priority in moved.values():
                patch.put_field(table, name, str(new_priority), str(new_priority))
    return patches


def _copy_buffer(patch: SwitchPatch, port: str, former: int, new_priority: int) -> None:
    """Give a priority group the buffer profile of another."""
    for key, fields in patch.config.get("BUFFER_PG", {}).items():
        if any(name == port and former in groups for name, groups in ports_and_numbers(key)):
            patch.put("BUFFER_PG", f"{port}|{new_priority}", fields)


def moving_classes(patch: SwitchPatch, port: str, moved: Mapping[int, int]) -> dict[int, int]:
    """Return the priority of each traffic class whose packets move."""
    groups = patch.map(port, "tc_to_pg_map")
    return {int(tc): int(group) for tc, group in groups.items() if int(group) in moved}


def dscp_of_class(patch: SwitchPatch, port: str) -> dict[int, int]:
    """Return the lowest DSCP of each traffic class; 0 for that of ports without a map."""
    lowest: dict[int, int] = {}
    for dscp, tc in sorted(patch.map(port, "dscp_to_tc_map").items(), key=lambda row: int(row[0])):
        lowest.setdefault(int(tc), int(dscp))
    return {DEFAULT_CLASS: 0, **lowest}


def _text(numbers: Mapping[int, int], keys: Iterable[int]) -> dict[str, str]:
    return {str(key): str(numbers[key]) for key in keys}
