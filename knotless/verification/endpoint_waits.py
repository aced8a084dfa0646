"""Waits of packets through hosts that send before they take more.

To the channels between switches (:mod:`knotless.verification.dependencies`) come those of hosts:
the one on which a host sends, whose buffer is at its switch, and the one on which it receives,
whose buffer is at the host. Packets that enter by the first wait for channels between switches, or
for a host of the same switch; packets wait for the second at the last switch. A host that has to
send a message of class B before it takes one of class A is a wait of the channel on which it
receives A for the one on which it sends B. All messages of a priority share these channels, so what
is behind a message waits with it. Without a cycle, no deadlock is possible: the argument is that of
channels, in which a host is one more place at which the head of a buffer waits.

With roles, waits are those of messages between clients and servers alone.

Classes of different priorities use virtual channels of their own: with V in the state, priority P
has those from P times V on. Frames to many hosts and to unknown addresses have priority 0.

References
----------
Song and Pinkston, A progressive approach to handling message-dependent deadlock in parallel
computer systems, IEEE Transactions on Parallel and Distributed Systems 14(3), 2003.

"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise, permutations, product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import EndpointError
from knotless.base.flow_control import AUTO, LinkFlowControl, refuse_bubbles, resolved
from knotless.base.model_limits import PRIORITIES
from knotless.base.printable import listed
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.routing.graphs.dependencies import Edges, merged, virtual_channel
from knotless.verification.dependencies import Wait

if TYPE_CHECKING:
    from knotless.traffic.endpoints import EndpointModel  # loads pydantic

Node = tuple[int, int]
"""A channel and a priority."""
NOBODY = -1
"""In place of the source and destination of a wait, of which no packet is looked up."""
NOT_PAUSED = "links to hosts do not pause: messages that a host does not take are lost"


def sends_and_takes(model: EndpointModel) -> str:
    """Return what is assumed of hosts with message classes."""
    classes = listed(sorted(model.classes), len(model.classes))
    alone = "" if model.roles is None else ", and nothing else: no frames to all or others"
    return f"hosts send and take messages as {model.name} says: {classes}{alone}"


class EndpointWaits:
    """The waits of a state whose hosts have message classes, under a flow control.

    Parameters
    ----------
    state : ForwardingState
        What every switch does with every packet.
    model : EndpointModel
        The message classes of its hosts.
    flow_control : str
        One of :data:`knotless.base.flow_control.CHOICES`; ``auto`` is PFC if messages use more than
        one virtual channel, else PAUSE.

    Raises
    ------
    EndpointError
        The priorities of the classes need more virtual channels than links have.
    PlanError
        The flow control does not exist, or has bubbles, whose theorem says nothing of hosts.

    """

    def __init__(
        self, state: ForwardingState, model: EndpointModel, flow_control: str = AUTO
    ) -> None:
        refuse_bubbles(flow_control, "message classes of hosts")
        self.state, self.model = state, model
        self._channels, self._hosts = len(state.channels), len(state.fabric.hosts)
        model.refuse_unknown_hosts(state.fabric.host_index)
        self._at_hosts: Edges
        self._first_free: Sequence[tuple[Node, Sequence[Node]]]
        if model.roles is None:
            parts = [part.core.host_waits() for part in (state, *state.concurrent)]
            self._at_hosts = np.concatenate([alone for alone, _ in parts])
            self._first_free = [wait for _, waits in parts for wait in waits]
        else:
            waits = sorted({wait for pair in self.pairs for wait in self._waits_of(*pair)})
            self._at_hosts = np.array(waits, dtype=np.int64).reshape(-1, 4)
            self._first_free = []
        self.vcs = 1 + max(self._highest_vc(), *state.priorities, 0)
        self.flow_control = resolved(flow_control, self.vcs * len(model.priorities))
        self._refuse_too_many()

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The hosts that send messages to each other, by their roles."""
        roles, index = self.model.roles, self.state.fabric.host_index
        if roles is None:
            return [*permutations(range(self._hosts), 2)]
        both = {*product(roles.clients, roles.servers), *product(roles.servers, roles.clients)}
        return sorted((index[a], index[b]) for a, b in both if a != b)

    def _waits_of(self, source: int, destination: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield what packets hold and wait for; of several paths, all that may follow."""
        channels, hosts = self.state.channels, self.state.fabric.hosts
        switch_of = [self.state.fabric.switch_index[host.switch] for host in hosts]
        for state in (self.state, *self.state.concurrent):
            hops = state.trace_number(hosts[source].name, destination).hops
            between = [hop for hop in hops if hop.channel < self._channels]
            held = [(self._channels + source, 0, switch_of[source])]
            held += [
                (hop.channel, hop.priority, int(channels.head[hop.channel])) for hop in between
            ]
            wanted = [
                (hop.channel, hop.priority, int(channels.tail[hop.channel])) for hop in between
            ]
            wanted += [
                (hop.channel, 0, switch_of[hop.channel - self._channels])
                for hop in hops
                if hop.channel >= self._channels
            ]
            for (channel, vc, enters), (onward, onward_vc, leaves) in product(held, wanted):
                if enters == leaves:
                    yield channel, vc, onward, onward_vc

    def _highest_vc(self) -> int:
        return int(self._at_hosts[:, [1, 3]].max(initial=0))

    def _refuse_too_many(self) -> None:
        links = self.flow_control.switch_links
        limit = len(links.classes) or PRIORITIES
        for name, one in self.model.classes.items():
            first, last = self.vcs * one.priority, self.vcs * (one.priority + 1) - 1
            if last >= limit:
                needed = f"{first} to {last}" if last > first else str(first)
                raise EndpointError(
                    f"{self.model.name}: {name} has priority {one.priority}, which needs virtual"
                    f" channel {needed}: links have {limit}, and each priority takes {self.vcs}"
                )

    def sends_on(self, host: int) -> int:
        """Return the number of the channel on which a host sends."""
        return self._channels + host

    def receives_on(self, host: int) -> int:
        """Return the number of the channel on which a host receives."""
        return self._channels + self._hosts + host

    def host_of(self, node: int) -> tuple[int, bool] | None:
        """Return the host whose channel a node is, and whether it receives there; None: none's."""
        number = node // VCS_PER_CHANNEL - self._channels
        if number < 0:
            return None
        receives, host = divmod(number, self._hosts)
        return host, bool(receives)

    def crossed(self, holds: int, requests: int) -> int | None:
        """Return the host in which a wait is, from what it receives to what it sends, or None."""
        receives, sends = self.host_of(holds), self.host_of(requests)
        if receives is None or sends is None or not receives[1] or sends[1]:
            return None
        return receives[0]

    def name_of(self, node: int) -> str:
        """Return the name of a node: ``SWITCH:PORT/PRIORITY``, or ``HOST/PRIORITY`` if it sends."""
        channels, priority = self.state.channels, node % VCS_PER_CHANNEL
        at_host = self.host_of(node)
        if at_host is None:
            return channels.name(*divmod(node, VCS_PER_CHANNEL))
        host = self.state.fabric.hosts[at_host[0]]
        if not at_host[1]:
            return f"{host.name}/{priority}"
        switch = self.state.fabric.switch_index[host.switch]
        return f"{host.switch}:{channels.port_name(switch, host.port)}/{priority}"

    @cached_property
    def edges(self) -> Edges:
        """(waits, 2) the nodes that are held while others are waited for alone."""
        return self._waiting(
            [
                *self._of_switches(self._between_switches),
                *self._of_links_of_hosts(),
                self._through_hosts,
            ]
        )

    @property
    def _between_switches(self) -> Edges:
        if self.model.roles is not None:
            return np.empty((0, 6), dtype=np.int64)  # those of messages are with those of hosts
        return self.state.dependencies[self.state.alone]

    @cached_property
    def every_edge(self) -> Edges:
        """(waits, 2) the same, and a wait for each of several of which the first free is taken."""
        choices = [(wait.holds, requests) for wait in self.first_free for requests in wait.requests]
        return np.concatenate([self.edges, np.array(choices, dtype=np.int64).reshape(-1, 2)])

    @cached_property
    def first_free(self) -> list[Wait]:
        """The waits for the first free of several."""
        if self.model.roles is not None:
            return []  # each of several is taken to be waited for alone
        rows = [(wait.held, wait.requested) for wait in self.state.first_free]
        waits = []
        for held, requested in [*rows, *self._first_free]:
            for priority in self._offsets:
                pairs = [[virtual_channel(*held), self._received(*node)] for node in requested]
                ends = self._waiting([np.array(pairs, dtype=np.int64) + priority])
                if len(ends) == len(pairs):
                    requests = sorted({*ends[:, 1].tolist()})
                    waits.append(Wait(int(ends[0, 0]), requests, NOBODY, NOBODY))
        return waits

    def classes_at(self, node: int) -> Iterator[str]:
        """Yield the message classes whose packets use a node."""
        links = self._links_of(node)
        for name, one in self.model.classes.items():
            vcs = one.priority * self.vcs + np.arange(self.vcs)
            if node % VCS_PER_CHANNEL in merged(vcs, links):
                yield name

    def messages(self, holds: int, requests: int) -> Iterator[tuple[str, str]]:
        """Yield the classes of which a host must send the second, to take the first.

        ``holds`` is the node on which it receives, ``requests`` the one on which it sends.
        """
        taken, sent = set(self.classes_at(holds)), set(self.classes_at(requests))
        for pair in self.model.waits(self._hosts):
            if pair[0] in taken and pair[1] in sent:
                yield pair

    def steps_between(self, source: int, destination: int) -> Iterator[tuple[int, int]]:
        """Yield the waits of messages from a host to another, and of those that follow from them.

        That of a host which sends one before it takes another is among them.
        """
        hosts = len(self.state.fabric.hosts)
        waits = {*self.model.waits(hosts)}
        for begun in (name for name in self.model.classes if name not in self.model.required):
            taken, ends = begun, (source, destination)
            path = self._path(taken, *ends)
            for _ in self.model.classes:
                sent = next(iter(self.model.classes[taken].sends_before_taking), None)
                if sent is None:
                    break
                ends = ends[::-1]
                answer = self._path(sent, *ends)
                if (taken, sent) in waits:
                    path += answer
                else:
                    yield from pairwise(path)
                    path = answer
                taken = sent
            yield from pairwise(path)

    def _path(self, name: str, source: int, destination: int) -> list[int]:
        """Return the nodes of the first path of a message, those of both hosts included."""
        trace = self.state.trace_number(self.state.fabric.hosts[source].name, destination)
        hops = [hop for hop in trace.hops if hop.channel < self._channels]
        nodes = [
            virtual_channel(self.sends_on(source), 0),
            *(virtual_channel(hop.channel, hop.priority) for hop in hops),
            virtual_channel(self.receives_on(destination), 0),
        ]
        first = self.vcs * self.model.classes[name].priority
        return [int(node) for node in self._merged(np.array(nodes, dtype=np.int64) + first)]

    def row_of(self, holds: int, requests: int) -> int:
        """Return the first dependency of the state that is this wait between switches."""
        rows = self.state.dependencies
        nodes = np.stack([virtual_channel(rows[:, i], rows[:, i + 1]) for i in (0, 2)], axis=1)
        for offset in self._offsets:
            matches = np.flatnonzero(
                (self._merged(nodes + offset) == (holds, requests)).all(axis=1)
            )
            if len(matches):
                return int(matches[0])
        raise KeyError((holds, requests))

    def shifted(self, nodes: NDArray[np.int64]) -> set[int]:
        """Return the nodes of virtual channels in each of the priorities of messages."""
        return {int(n) for offset in self._offsets for n in self._merged(nodes + offset)}

    @cached_property
    def _offsets(self) -> list[int]:
        """The numbers that the priorities of classes, and priority 0, add to virtual channels."""
        return sorted({0, *(self.vcs * priority for priority in self.model.priorities)})

    def _of_switches(self, rows: Edges) -> Iterator[Edges]:
        both = np.stack([virtual_channel(rows[:, i], rows[:, i + 1]) for i in (0, 2)], axis=1)
        yield from (both + offset for offset in self._offsets)

    def _of_links_of_hosts(self) -> Iterator[Edges]:
        rows = self._at_hosts
        receives = rows[:, 2] >= self._channels
        requests = virtual_channel(
            np.where(receives, rows[:, 2] + self._hosts, rows[:, 2]),
            # Frames to hosts have no tag: their buffer is one for all virtual channels of a class.
            np.where(receives, 0, rows[:, 3]),
        )
        both = np.stack([virtual_channel(rows[:, 0], rows[:, 1]), requests], axis=1)
        yield from (both + offset for offset in self._offsets)

    @cached_property
    def _through_hosts(self) -> Edges:
        edges: list[Edges] = [np.empty((0, 2), dtype=np.int64)]
        for taken, sent in self.model.waits(self._hosts):
            first, then = (self.vcs * self.model.classes[name].priority for name in (taken, sent))
            names = (host.name for host in self.state.fabric.hosts)
            hosts = np.flatnonzero([self.model.takes(name, taken) for name in names])
            ends = [
                virtual_channel(self.receives_on(0) + hosts, first + 0 * hosts),
                virtual_channel(self.sends_on(0) + hosts, then + 0 * hosts),
            ]
            edges.append(np.stack(ends, axis=1))
        return np.concatenate(edges)

    def _received(self, channel: int, priority: int) -> int:
        if channel >= self._channels:
            return virtual_channel(channel + self._hosts, 0)
        return virtual_channel(channel, priority)

    def _links_of(self, node: int) -> LinkFlowControl:
        control = self.flow_control
        return control.switch_links if self.host_of(node) is None else control.host_links

    def _waiting(self, parts: list[Edges]) -> Edges:
        """Return the nodes of waits if both ends pause, merged as their links pause."""
        nodes = np.concatenate(parts)
        is_host = nodes >= virtual_channel(self._channels, 0)
        pauses = np.where(
            is_host, self.flow_control.host_links.pauses, self.flow_control.switch_links.pauses
        )
        return self._merged(nodes[pauses.all(axis=1)])

    def _merged(self, nodes: NDArray[np.int64]) -> Edges:
        """Return the nodes of virtual channels on links that pause, in whichever way these do."""
        links = [self.flow_control.switch_links, self.flow_control.host_links]
        pausing = next((link for link in links if link.pauses), None)
        return nodes if pausing is None else merged(nodes, pausing)
