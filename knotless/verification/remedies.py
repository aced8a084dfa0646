"""Changes that make an unsafe imported fabric safe, each proven on the changed state.

References
----------
Hu et al., Tagger: practical PFC deadlock prevention in data center networks, CoNEXT 2017 (a packet
that goes up after it went down moves to the next lossless priority); the design of PFC deadlock
avoidance for SONiC dual-ToR (packets in tunnels have priorities of their own).

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from knotless.base.flow_control import FlowControl
from knotless.forwarding.openflow.directory import dir_files
from knotless.importers.fabric import ImportedFabric, RulesFabric, TableFabric
from knotless.importers.sonic.bounce_patch import bounce_patch
from knotless.importers.sonic.patch import SwitchPatch, tunnel_patch, without_pfc_patch
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.remedy_engine import opensm_files, other_engines
from knotless.verification.remedy_priorities import (
    PriorityChange,
    lossless_priorities,
    with_bounce_priorities,
    with_tunnel_priorities,
)
from knotless.verification.remedy_routes import without_turns
from knotless.verification.remedy_without_pfc import without_pfc


@dataclass(frozen=True)
class Remedy:
    """A change that makes a fabric safe.

    ``changes`` are lines that say what to change, ``cost`` numbers by name. ``fabric`` is the
    changed fabric, None if other routes are planned. ``files`` are configurations by file name.
    """

    kind: str
    text: str
    changes: tuple[str, ...]
    cost: Mapping[str, int]
    fabric: TableFabric | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Return the remedy as plain values."""
        return {
            "kind": self.kind,
            "text": self.text,
            "changes": list(self.changes),
            "cost": dict(self.cost),
            "files": dict(self.files),
        }


def remedies_of(imported: ImportedFabric, verdict: ImportedVerdict) -> Iterator[Remedy]:
    """Yield the remedies for a fabric with a cycle, cheap ones for the user first."""
    if not isinstance(imported, TableFabric):
        yield from _engines(imported)
        return
    for make in (_tunnels, _bounces, _withdrawn, lambda fabric, _: _engines(fabric), _lossy):
        for remedy in make(imported, verdict):
            if remedy.fabric is None or not verdict_of_imported(remedy.fabric).cycle:
                yield remedy


def _unsafe(imported: TableFabric, verdict: ImportedVerdict) -> list[int]:
    """Return the lossless priorities with a cycle; all, if no priority has one by itself."""
    every = lossless_priorities(imported)
    return [priority for priority in every if not verdict.vcs.get(str(priority), True)] or every


def _priorities(
    imported: TableFabric,
    kind: str,
    packets: str,
    change: PriorityChange,
    patches: Mapping[str, SwitchPatch] | None,
) -> Remedy:
    moves = [f"priority {former} to {new}" for former, new in change.moved.items()]
    ports = len(change.fabric.channels)
    return Remedy(
        kind,
        f"{packets}: {', '.join(moves)}",
        tuple(f"{packets} move from {move}" for move in moves),
        {"extra_priorities": len(moves), "ports": ports, "routes": 0, "pairs_lost": 0},
        change.fabric,
        _files(imported, patches),
    )


def _files(imported: TableFabric, patches: Mapping[str, SwitchPatch] | None) -> dict[str, str]:
    """Return the patches by file name; none if a switch is a Linux router without CONFIG_DB."""
    if any("DCB" in config for config in imported.configs):
        return {}
    return {f"{name}.json": patch.text for name, patch in (patches or {}).items() if patch.ops}


def _tunnels(imported: TableFabric, verdict: ImportedVerdict) -> Iterator[Remedy]:
    change = with_tunnel_priorities(imported, _unsafe(imported, verdict))
    if change is not None:
        packets = "packets in tunnels"
        patches = tunnel_patch(imported, change.moved) if imported.label == "DSCP" else None
        yield _priorities(imported, "tunnel-priority", packets, change, patches)


def _bounces(imported: TableFabric, verdict: ImportedVerdict) -> Iterator[Remedy]:
    change = with_bounce_priorities(imported, _unsafe(imported, verdict))
    if change is not None:
        packets = "packets that go up after they went down"
        # Patches give packets DSCPs, at which ports that trust the PCP do not look.
        patches = bounce_patch(imported, change.moved) if imported.label == "DSCP" else None
        yield _priorities(imported, "bounce-priority", packets, change, patches)


def _withdrawn(imported: TableFabric, verdict: ImportedVerdict) -> Iterator[Remedy]:
    withdrawal = without_turns(imported)
    if withdrawal is None:
        return
    changed, withdrawn = withdrawal
    state, channels = imported.traffics[0].state, imported.channels
    lines = [
        f"{channels.name(routes_at.channel, 0).rpartition('/')[0]}: no longer to"
        f" {', '.join(state.destination_name(number) for number in routes_at.destinations)}"
        for routes_at in withdrawn
    ]
    lost = verdict_of_imported(changed).undelivered - verdict.undelivered
    routes = sum(len(routes_at.destinations) for routes_at in withdrawn)
    cost = {"extra_priorities": 0, "ports": 0, "routes": routes, "pairs_lost": lost}
    unused_ports: dict[tuple[int, int], set[str]] = {}
    for routes_at in withdrawn:
        switch, port = (
            int(channels.tail[routes_at.channel]),
            int(channels.out_port[routes_at.channel]),
        )
        for number in routes_at.destinations:
            unused_ports.setdefault((switch, number), set()).add(channels.port_name(switch, port))
    files = imported.routes_without(unused_ports) or {}
    text = f"withdraw {routes} next hops"
    yield Remedy("withdraw-routes", text, tuple(lines), cost, changed, files)


def _engines(imported: ImportedFabric) -> Iterator[Remedy]:
    if imported.findings.gaps:
        return
    flow_control = FlowControl.PAUSE if isinstance(imported, RulesFabric) else FlowControl.PFC
    for checked in other_engines(imported.fabric, flow_control):
        engine, vcs = checked.plan.engine, checked.plan.vcs
        files: Mapping[str, str] = {}
        routes = len(imported.fabric.hosts) * len(imported.channels.names)
        if isinstance(imported, RulesFabric):
            files, routes = dir_files(imported.fabric, checked.rules), checked.rules.total
        elif isinstance(imported, TableFabric) and imported.flow_control == FlowControl.CREDITS:
            files = opensm_files(imported, engine)
        paths = "shortest paths" if checked.is_minimal else "some paths longer than the shortest"
        count = "1 priority" if vcs == 1 else f"{vcs} priorities"
        text = f"all routes by the engine {engine}, in {count}, {paths}"
        cost = {"extra_priorities": vcs - 1, "ports": 0, "pairs_lost": 0, "routes": routes}
        yield Remedy("engine", text, (f"route with --engine {engine}",), cost, None, files)


def _lossy(imported: TableFabric, _verdict: ImportedVerdict) -> Iterator[Remedy]:
    result = without_pfc(imported)
    if result is None:
        return
    changed, links = result
    channels = imported.channels
    lines = []
    for channel, priority in links:
        ends = [
            channels.name(direction, 0).rpartition("/")[0]
            for direction in (channel, channels.reverse[channel])
        ]
        lines.append(f"no PFC for priority {priority} on {ends[0]} and {ends[1]}")
    text = f"disable PFC on {len(links)} links, whose packets can then be lost"
    cost = {"extra_priorities": 0, "ports": 2 * len(links), "routes": 0, "pairs_lost": 0}
    files = _files(imported, without_pfc_patch(imported, links))
    yield Remedy("without-pfc", text, tuple(lines), cost, changed, files)
