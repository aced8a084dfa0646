"""Mininet's API on lossless links: ``from knotless.mininet import Knotless``.

A script for Mininet and its ``Topo`` run with one import changed::

    from knotless.mininet import Knotless

    net = Knotless(topo=MyTopo(), flow_control="pfc", engine="updown")
    net.start()
    net.pingAll()

Links pass through the link emulator, switches are those of an Open vSwitch that belongs to the
fabric, and our controller installs proven routes unless the script names controllers of its own.
What cannot work is refused in one line.
"""

from __future__ import annotations

import atexit
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

from knotless.base.errors import EmulationError, KnotlessError
from knotless.base.printable import listed, printable
from knotless.base.suggestions import suggestion
from knotless.cli.prompt import CLI
from knotless.emulation.daemon import Deadlock
from knotless.emulation.described_controller import EmulatedController, controller_of, unwrapped
from knotless.emulation.described_fabric import (
    Connection,
    DescribedFabric,
    Line,
    describe,
    dpid_of,
    host_of,
    line_of,
)
from knotless.emulation.emulated_net import EmulatedNet
from knotless.emulation.fabric_topo import FabricTopo
from knotless.emulation.host import EmulatedHost
from knotless.emulation.mn import (
    DefaultController,
    Host,
    Intf,
    Link,
    Node,
    OVSKernelSwitch,
    OVSLink,
    OVSSwitch,
    TCIntf,
    TCLink,
    TCULink,
    info,
    ipAdd,
    macColonHex,
)
from knotless.emulation.names import DEFAULT_NAME, names_of
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.signals import ENDING, end_at_signal
from knotless.emulation.switch import EmulatedSwitch
from knotless.fabric import check_options, fabric_to_run
from knotless.topologies.fabric import DEFAULT_DELAY_US, DEFAULT_RATE_MBPS, Fabric

__all__ = ["CLI", "EmulatedController", "Knotless"]


_TAKEN_SWITCHES = (OVSSwitch, OVSKernelSwitch, EmulatedSwitch)
_TAKEN_HOSTS = (Host, Node, EmulatedHost)
_TAKEN_LINKS = (Link, TCLink, TCULink, OVSLink)


NodeKind = TypeVar("NodeKind", EmulatedHost, EmulatedSwitch, EmulatedController)


class DescribedLink:
    """A link of a script: the nodes of both ends, their ports and its line.

    Once it runs, it has the attributes of Mininet's link, such as ``intf1``.
    """

    def __init__(self, connection: Connection, node1: Any, node2: Any) -> None:
        self.connection, self.node1, self.node2 = connection, node1, node2
        self.running: Any = None

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the running link."""
        if self.__dict__.get("running") is None:
            raise AttributeError(f"{name}: a link has interfaces once net.start() has started it")
        return getattr(self.running, name)

    def __str__(self) -> str:
        one = self.connection
        return f"{one.a}-eth{one.a_port}<->{one.b}-eth{one.b_port}"

    @property
    def ends(self) -> frozenset[tuple[str, int]]:
        """The node and port of both ends."""
        one = self.connection
        return frozenset([(one.a, one.a_port), (one.b, one.b_port)])

    def stop(self) -> None:
        """Do nothing: it ends with the fabric."""


class Knotless(EmulatedNet):
    """A ``mininet.net.Mininet`` whose links are lossless and whose routes cannot deadlock.

    Until :meth:`start` it only describes a fabric; then everything starts at once.

    Parameters
    ----------
    topo, switch, host, controller, link, intf, build, ipBase, autoSetMacs, autoStaticArp
        As those of Mininet. Classes that stand for what an emulated fabric has anyway are taken
        (``TCLink``, ``OVSSwitch``, ..), also with parameters (``partial(TCLink, bw=10)``); others
        are refused. ``controller`` is ours unless it is ``RemoteController``, a function or list of
        them, or None.
    waitConnected, cleanup
        Have no effect: :meth:`start` returns when all switches are connected.
    xterms, inNamespace, autoPinCpus, listenPort
        Are refused.
    name : str
        The name of the running fabric, by which ``knotless --name`` finds it.
    rate_mbps, delay_us : float
        Rate and one-way delay of links that have no ``bw`` or ``delay``.
    **options
        Fields of :class:`knotless.routing.request.PlanRequest`, such as ``engine`` and
        ``flow_control``, and of :class:`knotless.emulation.network.EmulatedFabric`, such as
        ``allow_deadlock`` and ``virtual_clock``.

    Raises
    ------
    EmulationError
        Something is not supported, or contradicts itself, in one line.

    Examples
    --------
    >>> from mininet.topo import LinearTopo
    >>> net = Knotless(topo=LinearTopo(k=3), flow_control="pfc", engine="updown")
    >>> [link.name for link in net.fabric.links]
    ['s2:2-s1:2', 's3:2-s2:3']

    """

    hosts: list[EmulatedHost]
    switches: list[EmulatedSwitch]
    controllers: list[EmulatedController]
    links: list[Any]
    built: bool

    def __init__(
        self,
        topo: Any = None,
        switch: Any = OVSSwitch,
        host: Any = Host,
        controller: Any = DefaultController,
        link: Any = Link,
        intf: Any = Intf,
        build: bool = True,
        xterms: bool = False,
        cleanup: bool = False,
        ipBase: str = "10.0.0.0/8",  # noqa: N803 - Mininet's name
        inNamespace: bool = False,  # noqa: N803 - likewise
        autoSetMacs: bool = False,  # noqa: N803 - likewise
        autoStaticArp: bool = False,  # noqa: N803 - likewise
        autoPinCpus: bool = False,  # noqa: N803 - likewise
        listenPort: int | None = None,  # noqa: N803 - likewise
        waitConnected: Any = False,  # noqa: N803 - likewise
        *,
        name: str = DEFAULT_NAME,
        rate_mbps: float = DEFAULT_RATE_MBPS,
        delay_us: float = DEFAULT_DELAY_US,
        **options: Any,
    ) -> None:
        if sys.excepthook is sys.__excepthook__:
            sys.excepthook = _explain
        for given, what in (
            (xterms, "xterms=True: open terminals with 'knotless attach HOST'"),
            (inNamespace, "inNamespace=True: all switches share one namespace"),
            (autoPinCpus, "autoPinCpus=True: hosts share all processors"),
            (listenPort, "listenPort: use 'dpctl' at the prompt, or ovs-ofctl on a switch"),
        ):
            if given:
                raise EmulationError(what)
        if isinstance(topo, type):
            raise EmulationError(
                f"topo={topo.__name__}: this is the class, not a topology: {topo.__name__}()"
            )
        check_options(options, without=("controller", "controllers"))
        self.fabric_name = names_of(name).name
        self._options = options
        self._emulated: EmulatedFabric | None = None
        self._begun: set[str] = set()
        switch, self._switch_defaults = _taken(switch, _TAKEN_SWITCHES, "switch")
        host, self._host_defaults = _taken(host, _TAKEN_HOSTS, "host")
        link, line = _taken(link, _TAKEN_LINKS, "link")
        self._default = line_of(line, Line(rate_mbps, delay_us), "link")
        _taken(intf, (Intf, TCIntf), "intf")
        super().__init__(
            topo,
            switch=switch,
            host=host,
            controller=controller,
            link=link,
            build=build,
            cleanup=cleanup,
            ipBase=ipBase,
            autoSetMacs=autoSetMacs,
            autoStaticArp=autoStaticArp,
            waitConnected=waitConnected,
        )

    def addHost(self, name: str, cls: Any = None, **params: Any) -> EmulatedHost:  # noqa: N802
        """Describe a host, as in Mininet; it runs when the fabric starts."""
        self._require_described(f"host {name}")
        _, given = _taken(cls or Host, _TAKEN_HOSTS, f"host {name}: cls")
        number = self.nextIP
        ip = ipAdd(number, ipBaseNum=self.ipBaseNum, prefixLen=self.prefixLen)
        defaults: dict[str, Any] = {"ip": f"{ip}/{self.prefixLen}"}
        if self.autoSetMacs:
            defaults["mac"] = macColonHex(number)
        self.nextIP += 1
        node = EmulatedHost(name, **{**defaults, **self._host_defaults, **given, **params})
        host_of(name, node.params)
        return self._added(node, self.hosts)

    def addSwitch(self, name: str, cls: Any = None, **params: Any) -> EmulatedSwitch:  # noqa: N802
        """Describe a switch, as in Mininet; it runs when the fabric starts."""
        self._require_described(f"switch {name}")
        _, given = _taken(cls or OVSSwitch, _TAKEN_SWITCHES, f"switch {name}: cls")
        node = EmulatedSwitch(name, **{**self._switch_defaults, **given, **params})
        node.dpid = f"{dpid_of(name, node.params):016x}"
        node.start_all = self._switch_begins
        return self._added(node, self.switches)

    def addController(  # noqa: N802 - Mininet's name
        self, name: Any = "c0", controller: Any = None, **params: Any
    ) -> EmulatedController | None:
        """Add one of our controllers, or name one that runs already (``RemoteController``)."""
        self._require_described(f"controller {name}")
        added = controller_of(name, controller or self.controller, params)
        if added is None:
            return None
        return self._added(added, self.controllers)

    def addLink(  # noqa: N802 - Mininet's name
        self,
        node1: Any,
        node2: Any,
        port1: int | None = None,
        port2: int | None = None,
        cls: Any = None,
        **params: Any,
    ) -> DescribedLink:
        """Describe a link, as in Mininet: its parameters are those of ``TCLink``."""
        ends = [self._node(node) for node in (node1, node2)]
        where = f"link {ends[0].name}-{ends[1].name}"
        self._require_described(where)
        _, given = _taken(cls or Link, _TAKEN_LINKS, f"{where}: cls")
        params = {**given, **params}
        ports = []
        for end, number, port in ((ends[0], 1, port1), (ends[1], 2, port2)):
            used = end.ports
            is_switch = isinstance(end, EmulatedSwitch)
            own = params.pop(f"params{number}", None) or {}
            port = own.get("port", params.pop(f"port{number}", port))
            taken = max(used.values()) + 1 if used else int(is_switch)
            port = taken if port is None else int(port)
            used[f"{where} {len(self.links)}"] = port
            ports.append(port)
            params.pop("intf", None), params.pop(f"cls{number}", None)
            own = {key: value for key, value in own.items() if key != "port"}
            if differing := [k for k in own if params.setdefault(k, own[k]) != own[k]]:
                raise EmulationError(f"{where}: {differing[0]} differs between its ends")
            name = params.pop(f"intfName{number}", None)
            if name not in (None, f"{end.name}-eth{port}"):
                raise EmulationError(
                    f"{where}: intfName{number}={name!r}: the interface is {end.name}-eth{port}, by"
                    " which its fabric is removed after a crash; omit the name, or give the port"
                )
            address = params.pop(f"addr{number}", None)
            if address is not None and not is_switch:
                end.params["mac"] = address
        params.pop("key", None), params.pop("node1", None), params.pop("node2", None)
        line = line_of(params, self._default, where)
        connection = Connection(ends[0].name, ports[0], ends[1].name, ports[1], line)
        link = DescribedLink(connection, *ends)
        self.links.append(link)
        return link

    def delLink(self, link: Any) -> None:  # noqa: N802 - Mininet's name
        """Remove a link from the description; a running one can be cut."""
        self._require_described(f"link {link}")
        self.links.remove(link)

    def delNode(self, node: Any, nodes: Any = None) -> None:  # noqa: N802 - Mininet's name
        """Remove a node from the description; a running one stays."""
        self._require_described(node.name)
        every = (self.hosts, self.switches, self.controllers)
        (nodes if nodes is not None else next(kind for kind in every if node in kind)).remove(node)
        del self.nameToNode[node.name]

    def linksBetween(self, node1: Any, node2: Any) -> list[Any]:  # noqa: N802 - Mininet's name
        """Return the links between two nodes, described or running."""
        if self.running is not None:
            links: list[Any] = super().linksBetween(node1, node2)
            return links
        return [link for link in self.links if {link.node1, link.node2} == {node1, node2}]

    def getNodeByName(self, *args: str) -> Any:  # noqa: N802 - Mininet's name
        """Return nodes by their names; raises EmulationError for a name that none has."""
        for name in args:
            if name not in self.nameToNode:
                hint = suggestion(
                    str(name), self.nameToNode, f"nodes are {listed(self.nameToNode)}"
                )
                raise EmulationError(f"there is no node {str(name)[:40]!r}; {hint}")
        return super().getNodeByName(*args)

    def addNAT(self, *_args: Any, **_options: Any) -> None:  # noqa: N802 - Mininet's name
        """Raise EmulationError: hosts reach only the fabric."""
        raise EmulationError("addNAT: a fabric has no way out: its hosts reach only each other")

    def staticArp(self) -> None:  # noqa: N802 - Mininet's name
        """Give all hosts the addresses of all others: when it starts, or now."""
        self.autoStaticArp = True
        if self.running is not None:
            super().staticArp()

    def build(self) -> None:
        """Describe the fabric of the topology; nothing runs yet."""
        if self.topo is not None and not self.built:
            self.buildFromTopo(self.topo)
        self.built = True

    @property
    def described(self) -> DescribedFabric:
        """The fabric as it is described; raises KnotlessError if it is inconsistent."""
        topo = self.topo
        name = type(topo).__name__ if topo is not None else "mininet"
        own = topo.fabric if isinstance(topo, FabricTopo) else None
        described = describe(
            name if own is None else own.name,
            {node.name: int(node.dpid, 16) for node in self.switches},
            [host_of(node.name, node.params) for node in self.hosts],
            self._connections,
        )
        hosts = {host.name: host for host in described.fabric.hosts}
        links = {link.name: link for link in described.fabric.links}
        if own is None or (set(hosts), set(links), set(described.fabric.switches)) != (
            set(own.host_index),
            {link.name for link in own.links},
            set(own.switches),
        ):
            return described
        # In its own order, with its grid and its family, which engines may need.
        fabric = replace(
            own,
            hosts=tuple(hosts[host.name] for host in own.hosts),
            links=tuple(links[link.name] for link in own.links),
        )
        return replace(described, fabric=fabric.with_family(own.family))

    @property
    def fabric(self) -> Fabric:
        """The fabric: switches in the order of their dpids, hosts and links."""
        return self.described.fabric if self.running is None else self.running.fabric

    def start(self) -> None:
        """Start everything, and return when every switch has its rules, or its controller.

        Raises
        ------
        KnotlessError
            One line: the fabric is inconsistent, its plan can deadlock and ``allow_deadlock`` is
            not given, this is not root, or a part does not start. All that was created is removed.

        """
        self._require_described("start")
        self.build()
        described, links = self.described, self.links
        options = {"static_arp": self.autoStaticArp or None, **self._options}
        controllers = self._controllers()
        routes = {node.name: node.params.get("defaultRoute") for node in self.hosts}
        if described.queue_bytes:
            info("*** max_queue_size limits queues of links without flow control only\n")
        emulated = fabric_to_run(
            described.fabric,
            {**options, **controllers},
            name=self.fabric_name,
            queue_bytes=described.queue_bytes,
            host_prefixes=described.prefixes,
            mininet=self,
            progress=lambda step: info(f"*** {step}\n"),
        )
        _end_in_good_order()
        self.links = []
        try:
            emulated.start()
        except BaseException:
            self.links = links
            raise
        self._emulated = emulated
        by_ends = {
            frozenset((end.owner, end.port) for end in link.cable.ends): link for link in self.links
        }
        for link in links:
            link.running = by_ends.get(link.ends)
        atexit.register(self.stop)
        for node in self.hosts:
            if route := routes[node.name]:
                node.setDefaultRoute(str(route))

    def stop(self) -> None:
        """End all processes and remove everything; calling it again does nothing."""
        if self._emulated is not None:
            info("*** Stopping the fabric\n")
            self._emulated.stop()
            self.running = self._emulated = None
            atexit.unregister(self.stop)

    def interact(self) -> None:
        """Start, open the prompt with all commands of Knotless, and stop."""
        self.start()
        try:
            CLI(self)
        finally:
            self.stop()

    def waitConnected(self, *_args: Any, **_options: Any) -> bool:  # noqa: N802 - Mininet's name
        """Return whether the fabric runs: it starts only when all switches are connected."""
        return self.running is not None

    def deadlock(self) -> Deadlock | None:
        """Return the deadlock of now, or None; raises EmulationError if nothing runs."""
        return self._require_running().deadlock()

    def freeze(self) -> Deadlock:
        """Deadlock the fabric on purpose, if its rules allow it; raises EmulationError."""
        return self._require_running().freeze()

    def release(self) -> bool:
        """End a deadlock by dropping all queued frames; raises EmulationError."""
        return self._require_running().release()

    def cut(self, a: Any, b: Any, silent: bool = False) -> None:
        """Cut all links between two nodes, as if the cables had been pulled.

        Parameters
        ----------
        a, b : str or node
            The ends.
        silent : bool
            Whether both ends keep their carrier, while all frames are dropped.

        Raises
        ------
        EmulationError
            There is no such link, or nothing runs.

        """
        cables = self._require_running().cables
        for cable in cables.find(f"{a}-{b}"):
            cables.cut(cable, silent=silent)

    def link(self, a: Any, b: Any, *, sender: str | None = None, **changes: float) -> None:
        """Change all links between two nodes while frames are under way.

        As in ``net.link("s1", "s2", loss=0.01, rate_mbps=5)``. ``sender`` is the end whose frames
        alone are concerned; see :meth:`knotless.emulation.cuts.Cables.set_line`, which raises
        EmulationError.
        """
        cables = self._require_running().cables
        for cable in cables.find(f"{a}-{b}"):
            cables.set_line(cable, changes, sender=sender)

    def mend(self, a: Any, b: Any) -> None:
        """Restore all links between two nodes; raises EmulationError."""
        cables = self._require_running().cables
        for cable in cables.find(f"{a}-{b}"):
            cables.mend(cable)

    @property
    def _connections(self) -> list[Connection]:
        return [link.connection for link in self.links]

    def _added(self, node: NodeKind, kind: list[NodeKind]) -> NodeKind:
        if node.name in self.nameToNode:
            raise EmulationError(f"{node.name!r} names two nodes: choose another name")
        kind.append(node)
        self.nameToNode[node.name] = node
        return node

    def _node(self, node: Any) -> Any:
        """Return the host or switch of this name, or the node itself."""
        name = getattr(node, "name", node)
        mine = self.nameToNode.get(name)
        if mine is None or mine in self.controllers:
            raise EmulationError(f"link to {str(name)[:40]!r}: there is no such host or switch")
        return mine

    def _require_described(self, what: str) -> None:
        """Raise EmulationError if the fabric runs: nodes and links are those of its start."""
        if self.running is not None:
            raise EmulationError(
                f"{what}: the fabric runs: change it before net.start(), or stop it first; links"
                " can be cut, switches stopped"
            )

    def _switch_begins(self, name: str) -> None:
        """Start the fabric when a script has started all its switches one by one."""
        self._begun.add(name)
        if self._begun >= {switch.name for switch in self.switches}:
            self.start()

    def _controllers(self) -> dict[str, Any]:
        """Return the options of :class:`EmulatedFabric` for the controllers of the script."""
        if not self.controllers:
            hand_built = self.topo is None and self.controller is DefaultController
            return {"controller": "ryu" if hand_built else "none"}
        remotes = [one.address for one in self.controllers if one.address is not None]
        if not remotes:
            return {"controller": "ryu", "controllers": len(self.controllers)}
        if len(remotes) < len(self.controllers):
            raise EmulationError(
                "controllers: either all are ours, or all are RemoteController: both would install"
                " rules"
            )
        return {"controller": "remote", "remotes": remotes}


def _taken(given: Any, taken: Sequence[Any], what: str) -> tuple[Any, dict[str, Any]]:
    """Return a class that an emulated fabric stands in for, and the parameters of a partial.

    Raises EmulationError for any other.
    """
    cls, params = unwrapped(given, {})
    if cls is not None and cls not in taken:
        names = " or ".join(dict.fromkeys(one.__name__ for one in taken))
        name = getattr(cls, "__name__", repr(cls))
        raise EmulationError(f"{what}={name}: it would replace what is emulated: give {names}")
    return cls, params


def _explain(
    kind: type[BaseException], problem: BaseException, trace: TracebackType | None
) -> None:
    """Print what ends a script: of a mistake of the user one line, with the line of the script."""
    if not isinstance(problem, KnotlessError):
        sys.__excepthook__(kind, problem, trace)
        return
    frames = traceback.extract_tb(trace)
    where = next((f"{one.filename}, line {one.lineno}: " for one in frames), "")
    sys.stderr.write(f"knotless: {printable(where + ' '.join(str(problem).split()))}\n")


def _end_in_good_order() -> None:
    """End the fabric at TERM and HUP too, unless the script has its own handlers."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and all(signal.getsignal(one) == signal.SIG_DFL for one in ENDING):
        end_at_signal()
