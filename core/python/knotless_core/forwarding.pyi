"""Forwarding states: construction from plans and rules, exploration, comparison."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

End = tuple[int, int]
"""A switch (its index) and a port."""
Hop = tuple[int, int, int]
"""A link (channels, then hosts' links), and the label and priority that a packet has there."""
Trace = tuple[list[Hop], list[tuple[int, int]], list[int], list[int], bool]
"""See :class:`forwarding.state.Trace`."""

class State:
    """The forwarding state of a fabric, filled in by following everything that hosts can send.

    Made by :func:`of_plan`, :func:`of_rules`, :func:`of_dot1q` or :func:`of_tables`. Destinations
    are the hosts, then the floods.
    """

    undelivered: int
    """Ordered pairs of hosts whose packets are not delivered exactly once and unlabelled."""
    floods_undelivered: list[int]
    """By group, first all hosts: receivers with missing, duplicate or unwanted copies."""
    loads: NDArray[np.float64]
    """(channels,) the delivered pairs that take each."""
    switches_passed: float
    """Over the packets of all delivered pairs."""
    max_switches: int
    """On a path of a delivered pair."""
    edges: NDArray[np.int64]
    """(edges, 6) dependencies: held channel and priority, wanted ones, source, destination."""
    failed: list[tuple[int, int]]
    """Some of the undelivered pairs, (source, destination)."""
    failed_floods: list[tuple[int, int]]
    """Some of the floods that fail, (source, destination)."""
    problems: list[tuple[int, str]]
    """Problems of the rules that packets meet, sorted."""
    floods: list[tuple[int, list[int]]]
    """The destinations after the hosts: (group, sources); group 0 is all hosts."""

    def flood_of(self, source: int, group: int) -> int:
        """Return the destination of a host's floods to a group; ValueError if there is none."""

    def trace(self, source: int, destination: int) -> Trace:
        """Trace a packet from a host; ValueError for an unknown host or destination."""

    def difference(self, other: State) -> tuple[int, int, Hop] | None:
        """Return a packet (source, destination, where) that two states treat differently."""

class Switch:
    """One switch's rules (a :class:`forwarding.openflow.rules.SwitchRules`), for single frames."""

    def __new__(cls, rules: object) -> Switch: ...
    def outputs(
        self, in_port: int, eth_dst: int, eth_src: int, eth_type: int, tags: Sequence[int]
    ) -> tuple[list[tuple[int, list[int]]], list[str]]:
        """Return the copies that leave, (port, tags), and problems of the rules met."""

def of_plan(
    switches: int,
    leaves: Sequence[End],
    enters: Sequence[End],
    hosts: Sequence[End],
    members: Sequence[Sequence[bool]],
    host_tags: bool,
    arrays: Mapping[str, Any],
) -> State:
    """Return the state of a plan, explored.

    ``members`` are the receivers of all hosts' floods, then of each group's. ``arrays``:

    row : (hosts,) uint32, the row of each host.
    vlan : (rows,) or (rows * switches,) uint16, the VLAN to all switches, or to each.
    flood_vlan : (rows,) uint16, the VLAN of floods.
    tree, tree_priority : (switches, switches) int32 and uint8, the channel by which what a switch
        floods enters another (-1: it does not), and its priority.
    channels, priorities, longest : (rows, switches, longest) int32 and uint8, explicit paths; or
    table_vlan, next_hop : (tables,) uint16 and (tables, switches, switches) int32;
    first, first_priority : (rows,) uint32 and (distinct rows, switches) uint8;
    changes : (changes, 4) int32, channel before, channel after, priority before and after.

    Raises
    ------
    ValueError
        Arrays that do not fit.
    LookupError
        ``("next hop", switch, VLAN, destination switch, two channels)`` or ``("priority", channel
        before, channel after, priority, two priorities)``: no switch can do both.

    """

def of_rules(
    rules: Iterable[object] | Compiled,
    leaves: Sequence[End],
    enters: Sequence[End],
    hosts: Sequence[End],
    macs: Sequence[int],
    groups: Sequence[tuple[int, int, Sequence[bool]]],
    tags: NDArray[np.uint16] | None,
) -> State:
    """Return the state that rules make, explored.

    ``rules`` are a :class:`forwarding.openflow.rules.SwitchRules` for each switch; ``groups`` are
    what is flooded: address, EtherType and receivers; ``tags`` (hosts, hosts and groups) is the
    VLAN that a host puts on. Numbers that fit no field raise OverflowError, arguments that do not
    fit ValueError.
    """

def of_dot1q(
    switches: Sequence[object],
    leaves: Sequence[End],
    enters: Sequence[End],
    hosts: Sequence[End],
    macs: Sequence[str],
    tags: NDArray[np.uint16] | None,
) -> State:
    """Return the state that the tables of 802.1Q switches make, explored.

    ``switches`` are :class:`forwarding.dot1q.model.L2Switch`; ``macs`` the addresses of the hosts,
    as in their tables; ``tags`` (hosts, hosts and the broadcast) is the VLAN that a host puts on.
    Numbers that fit no field raise OverflowError, arguments that do not fit ValueError.
    """

def of_tables(
    switches: int,
    leaves: Sequence[End],
    enters: Sequence[End],
    hosts: Sequence[End],
    arrays: Mapping[str, Any],
) -> State:
    """Return the state that next-hop tables make, explored. See core/forwarding/src/tables.rs.

    The state's problems are what packets met that is not known: ``class N`` (of destinations),
    ``port N`` (what it leads to), ``ports IN OUT`` (the virtual channel). ``arrays``:

    class : (hosts, switches) uint16, the class of each destination at each switch.
    first_class : (switches,) uint32, the place of a switch's class 0 in ``action_of``.
    action_of : (classes of all switches,) uint32, the number of each class's action.
    action_kind, port_end : (actions,) uint8 and uint32, what an action does with its part of
        ``ports`` (uint32), which ends at ``port_end``: 0 sends out of all ports, 1 out of any one
        (port 0xffffffff: to the destination, which is attached here), 2 relabels by the map of this
        number, 3 is unknown.
    towards : (labels,) int64, the destination that tables are asked for; -1: the packet's own.
    relabelled : (maps, labels) uint16, the new labels.
    vc_in, vc_out, vc_row : uint32, the row for each link in and channel out.
    vcs : (rows, labels) uint8, virtual channels; 254: dropped, 255: unknown.
    stands_for : (hosts,) uint32, the host whose unicasts are treated alike.
    first_labels : (hosts, hosts) uint16, the label at the start, 65535: nothing is sent; or
        (0, hosts): label 0.

    Raises
    ------
    ValueError
        Arrays that do not fit.

    """

class Compiled:
    """The OpenFlow rules of all switches, made by :func:`compile_rules`."""

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return them in columns, with an entry for each rule, -1 where nothing is matched or set.

        table, priority, in_port, metadata, eth_type, vlan_pcp, write_metadata, goto
        eth_dst, eth_src, vlan_vid, each with NAME_mask: the bits that count, 0 for none
        actions : the number of a list of actions

        And ``rule_ends`` and ``group_ends`` (switches,), ``bucket_ends`` (groups,) into
        ``buckets``, which are lists of actions again, ``list_ends`` (lists,) into ``action_kind``
        and ``action_argument``: 0 output to a port, 1 push a tag, 2 pop it, 3 set the VLAN, 4 set
        the priority, 5 hand to a group of the switch, which are numbered from 1.
        """

def compile_rules(
    state: State, macs: Sequence[int], groups: Sequence[int], host_tags: bool
) -> Compiled:
    """Return the OpenFlow rules of all switches.

    ``macs`` are the addresses of the hosts, ``groups`` those of the multicast groups in the order
    of the state's.

    Raises
    ------
    LookupError
        ``(switch, reason)``: its tables cannot express the state.

    """
