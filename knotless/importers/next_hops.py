"""Next-hop tables in columns, from which the Rust core makes a forwarding state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from knotless._core import forwarding as core
from knotless.base.errors import RuleError
from knotless.routing.graphs.channels import Channels, End

DROPPED, UNKNOWN = 254, 255
"""Instead of a virtual channel: packets are dropped, or what happens to them is not known."""
NOT_SENT = 65535
"""The first label of packets that are not sent."""
HERE = 0xFFFFFFFF
"""Stands for the ports of destinations that are attached to the switch itself."""
MAX_CLASSES = 65_535
_ALL, _ANY, _RELABEL, _UNKNOWN, _LINK = range(5)
_SENDS = (_ALL, _ANY, _LINK)


@dataclass
class Actions:
    """The distinct actions of all switches, numbered in the order in which they are first used.

    An action has a kind, ports, and exits: ports to devices out of the fabric, by which packets
    leave.
    """

    _numbers: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = field(default_factory=dict)

    def _number(self, kind: int, ports: tuple[int, ...], exits: tuple[int, ...] = ()) -> int:
        return self._numbers.setdefault((kind, ports, exits), len(self._numbers))

    def send(self, ports: Sequence[int], exits: Sequence[int] = ()) -> int:
        """Return the action that sends out of any one of these; without ports it drops."""
        kind = _ANY if len(ports) + len(exits) > 1 else _ALL
        return self._number(kind, tuple(ports), tuple(exits))

    def link(self, ports: Sequence[int]) -> int:
        """Return the action for the addresses of a link, to which ``ports`` lead.

        It sends out of any one of them, but what comes from the link has arrived.
        """
        return self._number(_LINK, tuple(ports))

    def end(self) -> int:
        """Return the action for the addresses of the switch itself: packets have arrived."""
        return self.link(())

    def relabel(self, label_map: int) -> int:
        """Return the action that relabels by a map and looks at the table again."""
        return self._number(_RELABEL, (label_map,))

    def unknown(self) -> int:
        """Return the action for packets that are forwarded in an unknown way."""
        return self._number(_UNKNOWN, ())

    def with_port(self, port: int) -> list[int]:
        """Return the actions that send out of a port between switches, or of :data:`HERE`."""
        listed = self._numbers.items()
        return [number for (kind, ports, _), number in listed if kind in _SENDS and port in ports]

    def to_hosts(self) -> list[int]:
        """Return the actions by which packets arrive, or leave the fabric."""
        left = [number for (_, _, exits), number in self._numbers.items() if exits]
        return sorted({*left, *self.with_port(HERE)})

    def arriving(self) -> list[int]:
        """Return by action the one that does the same, but what leaves by an exit arrives."""
        return [
            self.send(sorted({*ports, HERE})) if exits else number
            for (_, ports, exits), number in list(self._numbers.items())
        ]

    def without(self, number: int, port: int) -> int:
        """Return the action that does the same without sending out of ``port``."""
        kind, ports, exits = list(self._numbers)[number]
        if kind not in _SENDS or port not in ports:
            return number
        left = [other for other in ports if other != port]
        return self.link(left) if kind == _LINK and left else self.send(left, exits)

    def count(self, number: int) -> int:
        """Return out of how many ports an action sends."""
        kind, ports, exits = list(self._numbers)[number]
        return len(ports) + len(exits) if kind in _SENDS else 0

    def listed(self) -> list[tuple[int, tuple[int, ...]]]:
        """Return the kind and the ports of each, by number."""
        return [(kind, ports + exits) for kind, ports, exits in self._numbers]

    def columns(self) -> dict[str, object]:
        """Return them as arrays; see ``of_tables`` in ``forwarding.pyi``."""
        lists = [ports for _, ports in self.listed()]
        return {
            "action_kind": np.array([kind for kind, _, _ in self._numbers], dtype=np.uint8),
            "port_end": np.cumsum([len(ports) for ports in lists], dtype=np.uint32),
            "ports": np.array([port for ports in lists for port in ports], dtype=np.uint32),
        }


def classes_at(
    values: NDArray[np.int32], attached: NDArray[np.bool_]
) -> tuple[NDArray[np.uint16], NDArray[np.int32]]:
    """Return the class of each destination at a switch, and the value of each class.

    Destinations of equal ``values`` are one class, but those that are ``attached`` to the switch
    are a class each: the switch sends them on different channels.

    Raises
    ------
    RuleError
        There are too many classes.

    """
    unique = int(values.max(initial=0)) + 1 + np.arange(len(values))
    _, first, classes = np.unique(
        np.where(attached, unique, values), return_index=True, return_inverse=True
    )
    if len(first) > MAX_CLASSES:
        raise RuleError(f"a switch treats more than {MAX_CLASSES} destinations differently")
    return classes.astype(np.uint16), values[first]


@dataclass(frozen=True)
class VcMap:
    """The virtual channel on a channel out, by channel in and label.

    ``rows`` (rows, labels) uint8 are virtual channels, :data:`DROPPED` or :data:`UNKNOWN`; channels
    ``channel_in[i]`` and ``channel_out[i]`` have row ``row[i]``. ``labels`` (rows, labels) are the
    labels on the channel out; without them packets keep theirs.
    """

    channel_in: NDArray[np.uint32]
    channel_out: NDArray[np.uint32]
    row: NDArray[np.uint32]
    rows: NDArray[np.uint8]
    labels: NDArray[np.uint16] | None = None

    def with_labels(self, labels: Sequence[int]) -> VcMap:
        """Return the map for these labels only, which are numbered from 0 in this order.

        No packet may change to another label than these.
        """
        chosen = list(labels)
        rows = np.ascontiguousarray(self.rows[:, chosen])
        onward = None
        if self.labels is not None:
            number = np.zeros(self.rows.shape[1], dtype=np.uint16)
            number[chosen] = np.arange(len(chosen))
            onward = np.ascontiguousarray(number[self.labels[:, chosen]])
        return VcMap(self.channel_in, self.channel_out, self.row, rows, onward)


@dataclass(frozen=True)
class NextHops:
    """The actions of switches for the destinations of an imported fabric.

    ``ends`` are the switch and port of each destination; hosts, which also send, come first, and
    ports whose far end is not known, which only send, are the last ``unread``. ``classes``
    (destinations, switches) uint16 number the classes of each switch from 0. Its destinations after
    ``ends`` are addresses that no host has.
    ``action_of`` is the number of each class's action, by switch. ``towards`` and ``relabelled``
    are those of ``of_tables`` in ``forwarding.pyi``; without them there is nothing to relabel.
    ``fallbacks`` (layers, destinations, switches) int32 are the actions by shorter and shorter
    prefixes, -1: none. They count where all next hops of longer ones have failed.
    """

    channels: Channels
    ends: Sequence[End]
    classes: NDArray[np.uint16]
    action_of: Sequence[NDArray[np.uint32]]
    actions: Actions
    towards: NDArray[np.int64] | None = None
    relabelled: NDArray[np.uint16] | None = None
    fallbacks: NDArray[np.int32] | None = None
    unread: int = 0

    @property
    def table(self) -> NDArray[np.int32]:
        """(destinations, switches) the action of each switch for each destination."""
        columns = [
            actions[self.classes[:, switch]] for switch, actions in enumerate(self.action_of)
        ]
        return np.stack(columns, axis=1).astype(np.int32)

    def ends_at(self, destination: int, switch: int) -> bool:
        """Tell whether a destination is an address of a switch itself."""
        number = self.action_of[switch][self.classes[destination, switch]]
        return int(number) == self.actions.end()

    def with_table(self, table: NDArray[np.int32]) -> NextHops:
        """Return the same with other actions, numbered by ``actions``."""
        classes, action_of = classes_of(table, self.actions)
        return replace(self, classes=classes, action_of=action_of)

    def repeated(self, times: int) -> NextHops:
        """Return the same for ``times`` as many labels: those of each repetition are alike."""
        towards, relabelled = self.towards, self.relabelled
        if towards is not None:
            towards = np.tile(towards, times)
        if relabelled is not None:
            parts = [relabelled + part * relabelled.shape[1] for part in range(times)]
            relabelled = np.ascontiguousarray(np.concatenate(parts, axis=1), dtype=np.uint16)
        return replace(self, towards=towards, relabelled=relabelled)

    def state(
        self,
        vcs: VcMap,
        first_labels: NDArray[np.uint16] | None = None,
        representative: NDArray[np.uint32] | None = None,
    ) -> core.State:
        """Return the explored state.

        ``first_labels`` (ends, destinations) are the labels at the start; by default everybody
        sends to all with label 0. ``representative`` (ends,) is a host whose packets are treated
        alike.
        """
        arrays = {
            **self.arrays(vcs),
            "representative": np.arange(len(self.ends), dtype=np.uint32)
            if representative is None
            else representative,
            "first_labels": np.empty((0, len(self.classes)), dtype=np.uint16)
            if first_labels is None
            else first_labels,
        }
        return core.of_tables(*self.core_ends, arrays)

    @property
    def core_ends(self) -> tuple[int, list[End], list[End], list[End]]:
        """The number of switches; the ends that channels leave and enter; those of destinations."""
        channels = self.channels
        leaves = list(zip(channels.tail.tolist(), channels.out_port.tolist(), strict=True))
        enters = list(zip(channels.head.tolist(), channels.in_port.tolist(), strict=True))
        return len(channels.names), leaves, enters, list(self.ends)

    def arrays(self, vcs: VcMap) -> dict[str, object]:
        """Return the tables as arrays; see ``of_tables`` in ``forwarding.pyi``."""
        labels = vcs.rows.shape[1]
        own_labels = np.full(labels, -1, dtype=np.int64)
        sizes = [len(actions) for actions in self.action_of]
        return {
            **self.actions.columns(),
            "class": np.ascontiguousarray(self.classes),
            "unread": self.unread,
            "first_class": (np.cumsum(sizes) - sizes).astype(np.uint32),
            "action_of": np.concatenate([*self.action_of, np.empty(0, np.uint32)]),
            "towards": own_labels if self.towards is None else self.towards,
            "relabelled": np.empty((0, labels), dtype=np.uint16)
            if self.relabelled is None
            else self.relabelled,
            "vc_in": vcs.channel_in,
            "vc_out": vcs.channel_out,
            "vc_row": vcs.row,
            "vcs": vcs.rows,
            "vc_labels": np.empty((0, labels), dtype=np.uint16)
            if vcs.labels is None
            else vcs.labels,
        }


def classes_of(
    table: NDArray[np.int32], actions: Actions
) -> tuple[NDArray[np.uint16], list[NDArray[np.uint32]]]:
    """Return the classes of all switches and their actions; see :class:`NextHops`.

    ``table`` (destinations, switches) are the actions.
    """
    classes = np.zeros(table.shape, dtype=np.uint16)
    action_of: list[NDArray[np.uint32]] = []
    attached = np.array(actions.to_hosts(), dtype=np.int32)
    for switch in range(table.shape[1]):
        classes[:, switch], values = classes_at(
            table[:, switch], np.isin(table[:, switch], attached)
        )
        action_of.append(values.astype(np.uint32) if len(values) else np.array([0], np.uint32))
    return classes, action_of
