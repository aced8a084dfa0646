"""What two sets of routes have in common; where they differ, packets are dropped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from knotless.routing.routes import ExplicitRoutes, Routes, TableRoutes


def common_routes(old: Routes, new: Routes) -> Routes | None:
    """Return ``old`` without the hops in which ``new`` differs, or None if they have other forms.

    A path ends before its first hop that differs; a broadcast tree does not enter a switch that
    ``new`` enters on another channel or with another priority.
    """
    if old.rows.shape != new.rows.shape or (old.rows != new.rows).any():
        return None
    same = (old.tree_channels == new.tree_channels) & (old.tree_priorities == new.tree_priorities)
    trees = np.where(same, old.tree_channels, -1).astype(old.tree_channels.dtype)
    if isinstance(old, TableRoutes) and isinstance(new, TableRoutes):
        if old.next_hop.shape != new.next_hop.shape:
            return None
        hops = np.where(old.next_hop == new.next_hop, old.next_hop, -1)
        return replace(
            old,
            next_hop=hops.astype(old.next_hop.dtype),
            changes=np.concatenate([old.changes, new.changes]),  # the last one counts
            tree_channels=trees,
        )
    if isinstance(old, ExplicitRoutes) and isinstance(new, ExplicitRoutes):
        longest = min(old.channels.shape[2], new.channels.shape[2])
        channels, priorities = old.channels[..., :longest], old.priorities[..., :longest]
        same = channels == new.channels[..., :longest]
        same &= priorities == new.priorities[..., :longest]
        same = np.logical_and.accumulate(same, axis=2)
        return replace(
            old,
            channels=np.where(same, channels, -1).astype(channels.dtype),
            priorities=np.where(same, priorities, 0).astype(priorities.dtype),
            tree_channels=trees,
        )
    return None
