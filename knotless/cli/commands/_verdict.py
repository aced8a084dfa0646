"""The verdict of ``knotless check``, drawn or for other commands."""

from __future__ import annotations

from collections.abc import Sequence

from knotless.base.flow_control import AUTO
from knotless.forwarding.openflow.directory import (
    is_dir_of_rules,
    read_dir,
    read_multicast,
    read_tags,
)
from knotless.forwarding.openflow.reader import state_of_rules
from knotless.importers.paths import read_paths
from knotless.routing.graphs.channels import Channels
from knotless.topologies.fabric import Fabric
from knotless.verification.check import Verdict, verdict_of
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from knotless.verification.verdict_parts import is_pool


def draw_cycle(fabric: Fabric, channels: Channels, path: str, cycle: Sequence[str]) -> None:
    """Draw ``fabric`` with a cycle of dependencies in red."""
    from knotless.drawing import draw_fabric  # Matplotlib takes a second to load

    draw_fabric(fabric, path, {channels.end_of(name) for name in cycle if not is_pool(name)})


def verdict_on(paths: Sequence[str]) -> tuple[Fabric, dict[str, object]]:
    """Return a fabric and the values of its verdict; ``paths`` are as of ``knotless check``."""
    if len(paths) == 1 and is_dir_of_rules(paths[0]):
        fabric, rules = read_dir(paths[0])
        groups, tags = read_multicast(fabric, paths[0]), read_tags(fabric, paths[0])
        verdict: Verdict | ImportedVerdict = verdict_of(
            state_of_rules(fabric, rules, groups, tags), AUTO
        )
    else:
        imported = read_paths(paths)
        fabric, verdict = imported.fabric, verdict_of_imported(imported)
    return fabric, verdict.as_json()
