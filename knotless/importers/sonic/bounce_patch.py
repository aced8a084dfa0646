"""The patch of CONFIG_DB that gives packets that go up after they went down another priority."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from knotless.importers.fabric import TableFabric
from knotless.importers.sonic.patch import (
    DEFAULT_CLASS,
    SwitchPatch,
    dscp_of_class,
    enabling,
    linked_ports,
    moving_classes,
    patch_of,
)

_CLASSES = 16
_FROM_ABOVE, _UP = "KNOTLESS_FROM_ABOVE", "KNOTLESS_UP"
_LOSSY_QUEUE = 0
_MAPS = ("dscp_to_tc_map", "tc_to_queue_map", "tc_to_pg_map")


def bounce_patch(imported: TableFabric, moved: Mapping[int, int]) -> dict[str, SwitchPatch] | None:
    """Return the patches that give packets that go up after they went down ``moved`` priorities.

    Ports that lead up give what comes down a traffic class of its own, which a port that leads up
    sends in the next priority, with its DSCP. Other ports send these classes in the queues of the
    former ones.

    Returns None if there are not enough classes, if the ports up of a switch have different maps,
    and where packets are in tunnels or already get another DSCP.
    """
    towards = imported.hops.towards
    rows = [config.get("PORT_QOS_MAP", {}) for config in imported.configs]
    marked = any(
        "tc_to_dscp_map" in port for ports_settings in rows for port in ports_settings.values()
    )
    if marked or (towards is not None and (towards >= 0).any()):
        return None
    patches = enabling(imported, moved)
    for switch in range(len(imported.configs)):
        up = [port for port, rise in linked_ports(imported, switch) if rise > 0]
        down = {port for port, rise in linked_ports(imported, switch) if rise <= 0}
        if not up:
            continue
        patch = patch_of(imported, patches, switch)
        if any(patch.map(port, use) != patch.map(up[0], use) for port in up for use in _MAPS):
            return None
        of_class = _classes_from_above(patch, up[0], moved)
        if of_class is None:
            return None
        _mark(patch, up, of_class, moved)
        classes = moving_classes(patch, up[0], moved)
        _keep_queues(patch, down, patch.ports - {*up} - down, classes, of_class, moved)
    return patches


def _classes_from_above(
    patch: SwitchPatch, port: str, moved: Mapping[int, int]
) -> dict[int, int] | None:
    """Return the class of what comes down, by its class otherwise; None if there are too few."""
    chain = [*moving_classes(patch, port, moved), *moved.values()]
    used = {int(tc) for tc in patch.map(port, "dscp_to_tc_map").values()} | set(chain)
    free = [tc for tc in range(_CLASSES) if tc not in used | {DEFAULT_CLASS}]
    return None if len(free) < len(chain) else dict(zip(chain, free, strict=False))


def _mark(
    patch: SwitchPatch, up: Iterable[str], of_class: Mapping[int, int], moved: Mapping[int, int]
) -> None:
    """Let the ports up give what comes down its classes, and send these in the next priority."""
    port = next(iter(up))
    priority = {
        **moving_classes(patch, port, moved),
        **{moved_to: moved_to for moved_to in moved.values()},
    }
    new = {str(moved_to): str(moved_to) for moved_to in moved.values()}
    classes = {**patch.map(port, "dscp_to_tc_map"), **new}
    came_down = {dscp: str(of_class.get(int(tc), int(tc))) for dscp, tc in classes.items()}
    kept_groups = {str(of_class[tc]): str(original) for tc, original in priority.items()}
    sent = {
        str(of_class[tc]): str(moved.get(original, _LOSSY_QUEUE))
        for tc, original in priority.items()
    }
    dscps = {str(tc): str(dscp) for tc, dscp in dscp_of_class(patch, port).items()}
    groups, queues = patch.map(port, "tc_to_pg_map"), patch.map(port, "tc_to_queue_map")
    patch.put("DSCP_TO_TC_MAP", _FROM_ABOVE, came_down)
    patch.put("TC_TO_PRIORITY_GROUP_MAP", _FROM_ABOVE, {**groups, **new, **kept_groups})
    patch.put("TC_TO_QUEUE_MAP", _UP, {**queues, **new, **sent})
    patch.put("TC_TO_DSCP_MAP", _UP, {**dscps, **new, **sent})
    for name in up:
        patch.use(
            name,
            dscp_to_tc_map=_FROM_ABOVE,
            tc_to_pg_map=_FROM_ABOVE,
            tc_to_queue_map=_UP,
            tc_to_dscp_map=_UP,
        )


def _keep_queues(
    patch: SwitchPatch,
    down: Iterable[str],
    to_hosts: Iterable[str],
    classes: Mapping[int, int],
    of_class: Mapping[int, int],
    moved: Mapping[int, int],
) -> None:
    """Let other ports send the classes of what came down in the queues of the former ones.

    Hosts pause the former priorities, so packets that bounced are sent to them in these queues.
    """
    maps = patch.config.get("TC_TO_QUEUE_MAP", {})
    of_switches = patch.queue_maps(down)
    for name in sorted((of_switches | patch.queue_maps(to_hosts)) & maps.keys()):
        queues = {tc: maps[name].get(str(tc), str(tc)) for tc in classes}
        for tc, priority in classes.items():
            new_priority = moved[priority]
            queues[new_priority] = str(new_priority) if name in of_switches else queues[tc]
        for tc, queue in queues.items():
            patch.put_field("TC_TO_QUEUE_MAP", name, str(of_class[tc]), queue)
