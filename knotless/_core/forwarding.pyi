"""Forwarding states: construction from plans and rules, exploration, comparison."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knotless.forwarding.openflow.rules import Group, Rule

End = tuple[int, int]
"""A switch (its index) and a port."""
Hop = tuple[int, int, int]
"""A channel (those between switches, then of hosts); the packet's label and priority on it."""
FirstFreeTuple = tuple[tuple[int, int], list[tuple[int, int]], int, int]
"""Held channel and priority, requested ones, source, destination."""
Trace = tuple[list[Hop], list[tuple[int, int]], list[int], list[int], bool, bool]
"""See :class:`knotless.forwarding.state.Trace`."""

class State:
    """The forwarding state of a fabric, with the results of exploring it from all hosts.

    Made by :func:`of_plan`, :func:`of_rules`, :func:`of_dot1q` or :func:`of_tables`. Destinations
    are the hosts, then the floods, then addresses that no host has: for their packets only the
    dependencies count.
    """

    undelivered: int
    """Ordered pairs of hosts whose packets are not delivered exactly once and without a label."""
    floods_undelivered: list[int]
    """By group (group 0 is all hosts): receivers with missing, duplicate or unwanted copies."""
    lost: int
    """Undelivered pairs of which some packet is lost after its first switch, see of_rules."""
    lost_pairs: list[tuple[int, int]]
    """Some of them, (source, destination)."""
    floods_lost: list[int]
    """As ``floods_undelivered``, without floods that the switch of their source drops."""
    loads: NDArray[np.float64]
    """(channels,) the number of delivered pairs that use each."""
    exact_loads: tuple[NDArray[np.int64], NDArray[np.uint64]]
    """Of next-hop tables: the same as whole numbers and fractions, in units of 2^-64.

    They do not depend on the order of destinations: ``loads`` are these, rounded.
    """
    switches_passed: float
    """The switches on the paths of all delivered pairs, summed."""
    max_switches: int
    """The most switches on a path of a delivered pair."""
    edges: NDArray[np.int64]
    """(edges, 6) dependencies: held channel and priority, requested ones, source, destination."""
    vcs: list[int]
    """The priorities in which packets hold a channel between switches or wait for one."""
    alone: NDArray[np.bool_]
    """(edges,) whether some packet requests the second alone, and not the first free of several."""
    first_free: list[FirstFreeTuple]
    """The packets that wait for the first free of several virtual channels, sorted. Their single
    dependencies are in ``edges``, too."""
    failed: list[tuple[int, int]]
    """Some of the undelivered pairs, (source, destination)."""
    failed_floods: list[tuple[int, int]]
    """Some of the floods that fail, (source, destination)."""
    failing: list[bytes]
    """With ``cut_links``: pairs of hosts that fail, then for each group the receivers of floods.

    The bit of a source and a receiver is (source * hosts + receiver), from the lowest of the first
    byte on. No bytes: none.
    """
    problems: list[tuple[int, str]]
    """(switch, text): problems in the rules that packets use, sorted."""
    floods: list[tuple[int, list[int]]]
    """The destinations after the hosts: (group, sources); group 0 is all hosts."""
    unassigned: list[str]
    """The destinations after the floods: each an address of those that are treated alike; empty
    texts in states of tables."""

    def is_acyclic(self, classes: list[int]) -> bool:
        """Tell whether ``edges`` close no cycle if the priorities of a class wait together.

        ``classes`` are those of the first priorities. False if there are edges of others.
        """

    def host_waits(
        self,
    ) -> tuple[NDArray[np.int64], list[tuple[tuple[int, int], list[tuple[int, int]]]]]:
        """Return the waits of packets that enter or leave by the link of a host.

        (waits, 4) held channel and priority, and those that are requested alone; and the packets
        that request the first free of several: what they hold, and what they request. The channel
        of a host is the one that it sends on where it is held, and the one that it receives on
        where it is requested.
        """

    def flood_of(self, source: int, group: int) -> int:
        """Return the destination of a host's floods to a group; ValueError if there is none."""

    def unassigned_of(self, source: int, address: str) -> int | None:
        """Return the destination of a host's packets for one of ``unassigned``, if it is one."""

    def trace(self, source: int, destination: int) -> Trace:
        """Trace a packet from a host; ValueError for an unknown host or destination.

        ValueError also for what a host sends to its own address, unless that was followed.
        """

    def shares(self, source: int, destination: int) -> list[tuple[Hop, float]]:
        """Return the share of packets that takes each hop if all choices are equally likely.

        A hop follows those that lead to it. Empty if a packet can loop. Raises as :meth:`trace`.
        """

    def difference(self, other: State) -> tuple[int, int, Hop] | None:
        """Return a packet (source, destination, hop) that the states treat differently, or None."""

class Switch:
    """One switch's rules (:class:`forwarding.openflow.rules.SwitchRules`), to apply to frames.

    Numbers out of range raise OverflowError.
    """

    def __new__(cls, rules: object) -> Switch: ...
    @staticmethod
    def written(flows: str, groups: str) -> Switch:
        """Return the switch whose rules and groups are in texts of ovs-ofctl.

        Raises ValueError as :func:`parse_rules`.
        """
    @staticmethod
    def all_written(texts: Sequence[tuple[str, str]]) -> list[Switch | str]:
        """Return the same of several switches, or the text of the error, by all processors."""
    @property
    def floods(self) -> bool:
        """Whether a rule or group sends to all ports of the switch: FLOOD or ALL."""
    def equals(self, other: Switch) -> bool:
        """Tell whether the rules and groups are the same."""
    def outputs(
        self,
        in_port: int,
        eth_dst: int,
        eth_src: int,
        eth_type: int,
        tags: Sequence[int],
        source_ip: int = 0,
    ) -> tuple[list[tuple[int, list[int]]], list[str]]:
        """Return the copies that leave as (port, tags), and problems in the rules used.

        ``source_ip`` is the IPv4 address that an ARP frame or IPv4 packet has as its source.

        Of rules of equal priority that match and differ, one counts.
        """
    def choices(
        self,
        in_port: int,
        eth_dst: int,
        eth_src: int,
        eth_type: int,
        tags: Sequence[int],
        source_ip: int = 0,
    ) -> tuple[list[list[tuple[int, list[int]]]], list[str]]:
        """Return the same for each choice among rules of equal priority that match and differ."""

def of_plan(
    switches: int,
    leaves: Sequence[End],
    enters: Sequence[End],
    hosts: Sequence[End],
    members: Sequence[Sequence[bool]],
    host_tags: bool,
    arrays: Mapping[str, Any],
    also_for: Sequence[State],
) -> State:
    """Return the explored state of a plan.

    ``members`` are the receivers of broadcasts, then those of each group. The state says also what
    the plan does with the packets of the states ``also_for``. ``arrays``:

    row : (hosts,) uint32, the row of each host.
    vlan : (rows,) or (rows * switches,) uint16, the VLAN to all switches or to each switch.
    flood_vlan : (rows,) uint16, the VLAN of floods.
    tree, tree_priority : (switches, switches) int32 and uint8, the channel through which a flood
        from one switch enters another (-1: none), and its priority.
    channels, priorities, longest : (rows, switches, longest) int32 and uint8, explicit paths.
        layers : int, how many layers of rows there are, of which packets take any one: the rows of
        hosts are in the first, and the others have as many each. Missing: one; or
    set_ends, set_channels : (switches, switches) uint32 and (channels of all sets,) int32, the sets
        of next hops by destination switch and switch; packets take any one. All have one VLAN.
        first_priority : (rows, switches) uint8;
        set_vcs : (channels of all sets,) uint8, the virtual channel on each, of which packets take
        the first that is free. Missing: they take any one, and keep that of first_priority;
        set_stays : bool, with set_vcs: packets that have left virtual channel 0 never return; or
    direct, towards : (switches, switches) and (intermediates, switches) int32, the channel to each
        destination switch, and to each intermediate. Packets from hosts take any one: directly, or
        over one of the intermediates between the two switches, with label VLAN + 1 + its number
        until they are there. All have one VLAN.
        choice_ends, over : (switches, switches) uint32 and (intermediates of all pairs,) uint16,
        the intermediates by destination switch and switch;
        intermediate : (switches,) uint32, the intermediate that each switch is, or is part of;
        kind, rises : (channels,) uint8 and (kinds, kinds) bool, whether packets move from virtual
        channel 0 to the next one and so on, from a channel of one kind to one of another; or
    table_vlan, next_hop : (tables,) uint16, and the NextHops of these tables;
    columns : (switches,) int32, the column of each switch, -1 without one; by default its number;
    first, first_priority : (rows,) uint32 and (distinct rows, switches) uint8;
    changes : (changes, 4) int32, channel before, channel after, priority before and after.

    Raises
    ------
    ValueError
        The shapes of the arrays do not match.
    LookupError
        ``("next hop", switch, VLAN, destination switch, two channels)`` or ``("priority", channel
        before, channel after, priority, two priorities)``: a switch cannot implement both.

    """

def of_rules(
    generations: Sequence[Sequence[Switch]],
    leaves: Sequence[End],
    enters: Sequence[End],
    hosts: Sequence[End],
    macs: Sequence[int],
    ips: Sequence[int | None],
    groups: Sequence[tuple[int, int, Sequence[bool]]],
    tags: Sequence[NDArray[np.uint16]],
    lags: Sequence[int],
    cut_links: bool,
    replayed: bool,
    any_address: bool,
) -> State:
    """Return the explored state of rules.

    Each of ``generations`` has the rules of every switch; ``groups`` are the flooded addresses,
    each with EtherType and receivers; ``tags`` are empty, or for each generation an array (hosts,
    hosts + groups) of the VLAN with which a host tags, 0 for none. A packet may meet rules of
    several generations, but none that is older than the newest that it has met by more than the
    ``lags`` entry of that.
    With ``cut_links``, what is sent to a port behind which nothing is does not count as lost. If
    ``replayed``, a packet may meet any generation after any other, and the state has what a switch
    does by each of them, for a simulation that knows which one it holds. With ``any_address``,
    hosts also send to every class of addresses that rules tell apart and no host has. Numbers out
    of range raise OverflowError, arguments that do not match ValueError.
    """

def of_dot1q(
    switches: Sequence[object],
    leaves: Sequence[End],
    enters: Sequence[End],
    hosts: Sequence[End],
    macs: Sequence[str],
    tags: NDArray[np.uint16] | None,
) -> State:
    """Return the explored state of the tables of 802.1Q switches.

    ``switches`` are :class:`knotless.forwarding.dot1q.model.L2Switch`; ``macs`` the addresses of
    the hosts as in the switches' tables; ``tags`` (hosts, hosts + 1 for broadcasts) is the VLAN
    with which a host tags. Numbers out of range raise OverflowError, arguments that do not match
    ValueError.
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

    class : (destinations, switches) uint16, the class of each destination at each switch: of the
        hosts, then of addresses that no host has.
    first_class : (switches,) uint32, the place of a switch's class 0 in ``action_of``.
    action_of : (classes of all switches,) uint32, the number of each class's action.
    action_kind, port_end : (actions,) uint8 and uint32, what an action does with its part of
        ``ports`` (uint32), which ends at ``port_end``: 0 sends out of all ports, 1 out of any one
        (port 0xffffffff: to the destination, which is attached here), 2 relabels by the map of this
        number, 3 is unknown, 4 sends out of any one, but drops what comes from one of them: the
        address is one of the link.
    towards : (labels,) int64, the destination that tables are asked for; -1: the packet's own.
    relabelled : (maps, labels) uint16, the new labels.
    vc_in, vc_out, vc_row : uint32, the row for each channel in and channel out.
    vcs : (rows, labels) uint8, virtual channels; 254: dropped, 255: unknown.
    vc_labels : (rows, labels) uint16, the label on the channel out; or (0, labels): it stays.
    representative : (hosts,) uint32, the host whose unicasts are treated alike.
    first_labels : (hosts, destinations) uint16, the label at the start, 65535: nothing is sent; or
        (0, destinations): label 0.
    unread : int, how many of the last hosts stand for ports whose far end is not known: only the
        dependencies of their packets count. 0 if it is missing.

    Raises
    ------
    ValueError
        Arrays that do not fit.

    """

def of_changed_tables(
    switches: int,
    leaves: Sequence[End],
    enters: Sequence[End],
    hosts: Sequence[End],
    arrays: Mapping[str, Any],
    traffics: Sequence[Mapping[str, Any]],
    switch: int,
    classes: NDArray[np.uint16],
    only: Sequence[int],
) -> list[tuple[State, State]]:
    """Return what packets to the destinations ``only`` do before and after a switch changes.

    ``arrays`` are those of :func:`of_tables`, before the change, without ``vcs`` and ``vc_labels``,
    of which each of ``traffics`` has its own. ``classes`` (destinations,) are those of the switch
    after the change. Their actions are in ``action_of`` as well.

    The two results for each traffic have deliveries and loads of these destinations alone, and the
    dependencies where only their own packets pass: all that the other result has not, and perhaps
    more. Their problems are those that either has. They cannot be asked for packets.

    Raises
    ------
    ValueError
        Arrays that do not fit.

    """

FailureAnswer = tuple[list[int], list[tuple[int, int, int]], int, bool]
"""A cycle of nodes (channel * 16 + virtual channel), or []; for each of its steps the source, the
destination and the label of a packet that takes it; the pairs between which some packet may not
arrive; whether packets meet something unknown."""

class Resident:
    """Next-hop tables that stay in memory while routes change, with what packets wait for.

    ``traffics`` are arrays as of :func:`of_tables`, one for each way in which packets are sent.
    ``counted`` says of each whether its pairs and loads count. ``pausing`` has an array of that
    name, (channels, 8, 16) or empty: every virtual channel waits alone. Nodes are
    ``channel * 16 + virtual channel``.

    Raises
    ------
    ValueError
        Arrays do not fit, or packets meet what is not known.

    """

    def __init__(
        self,
        switches: int,
        leaves: Sequence[End],
        enters: Sequence[End],
        hosts: Sequence[End],
        traffics: Sequence[Mapping[str, Any]],
        pausing: Mapping[str, Any],
    ) -> None:
        """Follow all packets."""

    def change(self, switch: int, actions: Sequence[tuple[int, int, Sequence[int]]]) -> None:
        """Give destinations other actions at a switch: each its number, kind and ports.

        Raises ValueError, and changes nothing, if packets meet what is not known.
        """

    @property
    def cycle(self) -> list[int]:
        """A shortest cycle, the one that :func:`.graph.shortest_cycle` returns; none: []."""

    @property
    def virtual_channels(self) -> list[tuple[int, bool]]:
        """Those in use, each with whether packets that stay in it close no cycle."""

    def witness(self, holds: int, requests: int) -> tuple[int, int, int] | None:
        """Return a packet that holds a node while it waits for another.

        It is the traffic, source and destination of the one that the dependencies of the explored
        states name first.
        """

    def state(self, traffic: int) -> State:
        """Return the state of a traffic, without dependencies."""

class WhatIf:
    """A fabric with next-hop tables and a model of how its routing reacts to failures."""

    def __init__(
        self,
        switches: int,
        leaves: Sequence[End],
        enters: Sequence[End],
        hosts: Sequence[End],
        arrays: Mapping[str, Any],
        sent: Sequence[tuple[NDArray[np.uint16], int, bool]],
        reaction: str,
    ) -> None:
        """Follow everything without failures; ValueError for arrays that do not fit.

        ``arrays`` are those of :func:`of_tables`, without ``representative`` and ``first_labels``,
        and:

        fallbacks : (layers, destinations, switches) int32, actions by shorter prefixes, -1: none.
        pausing : (channels, 8, 16) bool, whether a priority group stops a queue; or (0, 8, 16):
            every virtual channel is lossless.
        rises : (channels,) int8, 1 for channels up, -1 down, 0 neither.

        ``sent`` are first labels, what is added to them, and whether the pairs are counted.
        ``reaction`` is static, local, shortest or valley-free.
        """

    def intact(self) -> FailureAnswer:
        """Return the verdict without failures."""

    def differences(self) -> list[tuple[int, int]]:
        """Return (destination, switch) at which the routes without failures are not those read."""

    def causes(self, holds: int, requests: int) -> list[int]:
        """Return the destinations whose packets hold a node while they wait for another."""

    def evaluate(self, channels: Sequence[int], switches: Sequence[int]) -> FailureAnswer:
        """Return the verdict if these have failed; both directions of a link must be listed."""

    def copy(self) -> WhatIf:
        """Return a copy, which another thread can use."""

class Compiled:
    """The OpenFlow rules of all switches, made by :func:`compile_rules`."""

    def switches(self) -> list[Switch]:
        """Return the rules of each switch, in the order of the state."""

    def rules(self, switch: int) -> tuple[tuple[Rule, ...], tuple[Group, ...]]:
        """Return the rules, in their order, and the groups of a switch."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """(switches,) the number of rules of each switch."""

    @property
    def groups(self) -> int:
        """The number of groups of all switches."""

    def equals(self, other: Compiled) -> bool:
        """Tell whether all rules and groups are the same, compiled in the same order."""

COOKIE: int
"""That of compiled rules."""
TOP_PRIORITY: int
"""That of a rule which cannot be read and may have any priority."""

def parse_rules(flows: str, groups: str) -> tuple[tuple[Rule, ...], tuple[Group, ...]]:
    """Return the rules and groups that texts of ovs-ofctl describe.

    Raises ValueError with the line that cannot be parsed or represented.
    """

def parse_known_rules(
    text: str, ports: dict[str, int]
) -> tuple[tuple[Rule, ...], tuple[Group, ...], list[str], tuple[Rule, ...]]:
    """Return the rules and groups that can be read, what is wrong elsewhere, and unread rules.

    See :class:`knotless.forwarding.openflow.ofctl_parser.KnownRules`.
    """

def compile_rules(
    state: State,
    macs: Sequence[int],
    groups: Sequence[int],
    host_tags: bool,
    ips: Sequence[int | None] | None,
    check_packets: bool,
    hash_seed: int,
) -> Compiled:
    """Return the OpenFlow rules of all switches.

    ``macs`` are the addresses of the hosts, ``groups`` those of the multicast groups, in the order
    of the state. ``ips`` are the IPv4 addresses that hosts must have in ARP frames, and with
    ``check_packets`` as sources of IPv4 packets; None: any. ``hash_seed`` (32 bits) is that of
    the hash by which switches choose among several ports, see :func:`simulator.select_members`.

    Raises
    ------
    LookupError
        ``(switch, reason)``: the tables of this switch cannot express the state.

    """
