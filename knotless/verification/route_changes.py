"""The verdict after the routes of one router have changed, from what was found before.

Only packets to the destinations that it now sends elsewhere are followed: with the routes of then,
so that their loads can be taken off, and with those of now. All other packets take the same paths,
so that their dependencies stay. The new dependencies close no cycle if each leads on in a
topological order of the former ones, or else if these and the new ones together have no cycle: the
graph that really results is a part of that one.

This is for verdicts of which nothing else depends on routes: no cycle, and all is delivered, before
and after. Otherwise everything is checked, which also finds the packets of a cycle and those that
are lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knotless._core import forwarding as core
from knotless.base.errors import StateError
from knotless.base.sections import Sections
from knotless.importers.changed_router import changed_router
from knotless.importers.manifest import FileChange
from knotless.importers.routers.route_state import Action, ColumnChange, column_change
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.routing.graphs.dependencies import Edges, find_cycle, lossless_waits, virtual_channel
from knotless.verification.check_state import CheckState
from knotless.verification.imported_verdict import ImportedVerdict

_TYPES = ("|u1", "|b1", "<u2", "<u4", "<u8", "<i4", "<i8")
SHARED = (
    *("class", "first_class", "action_of", "action_kind", "port_end", "ports"),
    *("towards", "relabelled", "vc_in", "vc_out", "vc_row", "first_labels"),
)
OF_TRAFFIC = ("vcs", "vc_labels")
Arrays = dict[str, NDArray[Any]]


def verdict_after(state: CheckState, changes: Sequence[FileChange]) -> ImportedVerdict:
    """Return the verdict after files have changed.

    Raises
    ------
    StateError
        All must be checked, and why.
    KnotlessError
        A file cannot be read, or says something impossible.

    """
    contents = state.sections.part("contents")
    router = changed_router(state.files, contents, changes)
    if router is None:
        return state.verdict
    if state.failure_table is not None:
        raise StateError(f"the routes of {router.after.name} changed, and failures are tried")
    if "routes" not in state.sections:
        raise StateError(f"the routes of {router.after.name} changed")
    try:
        change = column_change(state.sections, *router)
        if not change.actions:
            return state.verdict
        return _Recheck(state.sections, change).verdict(state.verdict)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        raise _unfit() from None  # the state may be forged


class _Recheck:
    """The verdict on the tables of a state with a changed column of a switch."""

    def __init__(self, sections: Sections, change: ColumnChange) -> None:
        self._sections, self._change = sections, change
        about = sections.json("routes")
        match about:
            case {
                "switches": int(switches),
                "unread": int(unread),
                "counted": list(counted),
                "pools": bool(pools),
                "waits_in": dict(waits_in_vc),
                "arrays": dict(shapes),
            } if (
                all(isinstance(one, bool) for one in counted)
                and counted.count(True) == 1
                and all(type(count) is int for count in waits_in_vc.values())
            ):
                self._switches, self._unread, self._pools = switches, unread, pools
                self._counted, self._waits_in, self._shapes = counted, waits_in_vc, shapes
            case _:
                raise _unfit()

    def verdict(self, before: ImportedVerdict) -> ImportedVerdict:
        """Return the verdict on the changed routes; raises StateError if all must be checked."""
        if self._pools and not self._change.fewer:
            raise StateError("buffers without a reserve may wait for others")
        arrays = {name: self._array(name) for name in SHARED}
        leaves, enters, ends = map(self._pairs, ("leaves", "enters", "ends"))
        classes, arrays = _with_actions(arrays, self._change)
        only = sorted(self._change.actions)
        traffics = [
            {name: self._array(f"{name} {number}") for name in OF_TRAFFIC}
            for number in range(len(self._counted))
        ]
        given: dict[str, Any] = {
            **arrays,
            "representative": np.arange(len(ends), dtype=np.uint32),
            "unread": self._unread,
        }
        results = core.of_changed_tables(
            *(self._switches, leaves, enters, ends, given, traffics),
            *(self._change.switch, classes, only),
        )
        load = before.max_channel_load
        for (was, now), counted in zip(results, self._counted, strict=True):
            if now.problems:
                raise StateError("packets meet what is not known")
            if counted and now.undelivered:
                raise StateError("not all is delivered")
            if counted:
                load = self._load(was, now)
        removed, added = zip(*((was.edges, now.edges) for was, now in results), strict=True)
        self._refuse_cycle(removed, added, before)
        return replace(before, max_channel_load=load)

    def _load(self, was: core.State, now: core.State) -> int | float:
        """Return the largest load of a channel."""
        total = self._array("load").astype(np.int64), self._array("load_parts").astype(np.uint64)
        if not len(total[0]):
            return 0
        if not len(total[0]) == len(total[1]) == len(was.exact_loads[0]):
            raise _unfit()
        total = _difference(total, was.exact_loads)
        total = _sum(total, now.exact_loads)
        place = int(np.lexsort(total[::-1])[-1])
        load = ((int(total[0][place]) << 64) + int(total[1][place])) / (1 << 64)
        return int(load) if load.is_integer() else load

    def _refuse_cycle(
        self, removed: Sequence[Edges], added: Sequence[Edges], before: ImportedVerdict
    ) -> None:
        """Raise StateError if new dependencies may close a cycle, or other channels are in use."""
        flat = self._array("pausing")
        pausing = flat.reshape(-1, 8, flat.shape[1])
        waits, order = self._array("waits"), self._array("order")
        new = np.unique(keys_of(nodes_of(pausing, added)))
        if len(waits):
            place = np.minimum(np.searchsorted(waits, new), len(waits) - 1)
            new = new[waits[place] != new]
        if self._pools and len(new):
            raise StateError("buffers without a reserve may wait for others")
        holds, requests = ends_of(new)
        if len(new) and max(holds.max(), requests.max()) >= len(order):
            raise _unfit()
        forward = (order[holds] >= 0) & (order[requests] > order[holds])
        if not forward.all() and find_cycle(
            np.stack(ends_of(np.concatenate([waits, new])), axis=1)
        ):
            raise StateError("a cycle may be closed")
        # A virtual channel stays in use if one of its waits is none of those that may be gone.
        gone = waits_in(np.unique(keys_of(nodes_of(pausing, removed))))
        if any(count >= self._waits_in.get(vc, 0) for vc, count in gone.items()):
            raise StateError("packets may no longer wait in a virtual channel")
        if not waits_in(new).keys() <= before.vcs.keys():
            raise StateError("packets wait in another virtual channel")

    def _pairs(self, name: str) -> list[tuple[int, int]]:
        array = self._array(name)
        if array.ndim != 2 or array.shape[1] != 2:
            raise _unfit()
        return list(zip(*array.T.tolist(), strict=True))

    def _array(self, name: str) -> NDArray[Any]:
        match self._shapes.get(name):
            case [str(kind), [*shape]] if kind in _TYPES and all(
                type(size) is int and size >= 0 for size in shape
            ):
                data = self._sections.view(f"array {name}")
                dtype = np.dtype(kind)
                if len(data) == dtype.itemsize * int(np.prod(shape, dtype=object)):
                    return np.require(
                        np.frombuffer(data, dtype).reshape(shape), requirements=["C", "A"]
                    )
        raise _unfit()


def _unfit() -> StateError:
    return StateError("the tables of the state do not fit")


def _with_actions(arrays: Arrays, change: ColumnChange) -> tuple[NDArray[np.uint16], Arrays]:
    """Return the classes of the changed switch, and the tables with their actions."""
    first = arrays["first_class"].astype(np.uint32)
    switch, of_class = change.switch, arrays["class"]
    if of_class.ndim != 2 or switch >= min(len(first), of_class.shape[1]):
        raise _unfit()
    end = int(first[switch + 1]) if switch + 1 < len(first) else len(arrays["action_of"])
    count = end - int(first[switch])
    kinds, ends, ports = (arrays[name] for name in ("action_kind", "port_end", "ports"))
    numbers: dict[Action, int] = {}
    added: list[Action] = []
    classes = of_class[:, switch].astype(np.uint16)
    for destination, action in change.actions.items():
        if action not in numbers:
            numbers[action] = len(added)
            added.append(action)
        if destination >= len(classes) or count + numbers[action] > 0xFFFF:
            raise _unfit()
        classes[destination] = count + numbers[action]
    more_ports = [port for _, of_action in added for port in of_action]
    more_ends = np.cumsum([len(of_action) for _, of_action in added]) + len(ports)
    new_numbers = np.arange(len(kinds), len(kinds) + len(added), dtype=np.uint32)
    first[switch + 1 :] += np.uint32(len(added))
    return classes, {
        **arrays,
        "first_class": first,
        "action_of": np.insert(arrays["action_of"], end, new_numbers),
        "action_kind": np.append(kinds, [kind for kind, _ in added]).astype(np.uint8),
        "port_end": np.append(ends, more_ends).astype(np.uint32),
        "ports": np.append(ports, more_ports).astype(np.uint32),
    }


def nodes_of(pausing: NDArray[np.bool_], dependencies: Sequence[Edges]) -> Edges:
    """Return (dependencies, 4) the nodes of packets that wait, as channels and priority groups."""
    rows = np.concatenate([np.empty((0, 6), dtype=np.int64), *dependencies])
    return lossless_waits(pausing, rows)[1]


def keys_of(nodes: Edges) -> NDArray[np.uint64]:
    """Return each edge as a number: 2^32 times what is held plus what is requested."""
    holds, requests = (virtual_channel(*ends.T).astype(np.uint64) for ends in np.hsplit(nodes, 2))
    keys: NDArray[np.uint64] = holds << np.uint64(32) | requests
    return keys


def ends_of(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what is held, and what is requested."""
    return (
        (keys >> np.uint64(32)).astype(np.int64),
        (keys & np.uint64(0xFFFFFFFF)).astype(np.int64),
    )


def waits_in(keys: NDArray[np.uint64]) -> dict[str, int]:
    """Return the number of edges that begin or end in each virtual channel."""
    holds, requests = (ends % VCS_PER_CHANNEL for ends in ends_of(keys))
    counts = np.bincount(holds, minlength=VCS_PER_CHANNEL)
    counts += np.bincount(requests[requests != holds], minlength=VCS_PER_CHANNEL)
    return {str(vc): count for vc, count in enumerate(counts.tolist()) if count}


_Exact = tuple[NDArray[np.int64], NDArray[np.uint64]]
"""Numbers: whole ones, and fractions in units of 2^-64."""


def _sum(a: _Exact, b: _Exact) -> _Exact:
    parts = a[1] + b[1]
    return a[0] + b[0] + (parts < a[1]), parts


def _difference(a: _Exact, b: _Exact) -> _Exact:
    return a[0] - b[0] - (a[1] < b[1]), a[1] - b[1]
