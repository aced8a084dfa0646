"""Running fabrics: switches, hosts, link emulator and controller, from start to removal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, Self

from knotless.base.errors import EmulationError
from knotless.base.flow_control import FlowControl, resolved
from knotless.emulation import certificates, namespaces, nodes, options, rest, state, wiring
from knotless.emulation import controller as control
from knotless.emulation import daemon as emulator
from knotless.emulation.cuts import Cables
from knotless.emulation.daemon import Daemon
from knotless.emulation.datapath import TEXTS, Choice, Datapath, chosen
from knotless.emulation.host import EmulatedHost
from knotless.emulation.interface_names import interface_names
from knotless.emulation.link import EmulatedLink
from knotless.emulation.names import DEFAULT_NAME, SENDERS_MARK, Names, names_of, role_of
from knotless.emulation.ovs import PrivateOvs
from knotless.emulation.parts_watch import PartsWatch
from knotless.emulation.priority import Priority
from knotless.emulation.requirements import require_fabrics
from knotless.emulation.running_fabric import RunningFabric, write_shells
from knotless.emulation.runtime import Runtime, claim
from knotless.emulation.signals import uninterrupted
from knotless.emulation.switches import Switches
from knotless.emulation.virtual_clock import program_environment
from knotless.routing.multicast import addresses
from knotless.routing.plan import Plan
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats import files
from knotless.topologies.validate import validate


@dataclass
class EmulatedFabric:
    """A fabric to run, and between :meth:`start` and :meth:`stop` the running one.

    Parameters
    ----------
    fabric : Fabric
        The switches, hosts and links.
    request : PlanRequest
        The request for the plan, which our controller computes. Without emulated links there is no
        flow control.
    name : str
        The name of the running fabric, by which ``knotless --name`` finds it.
    allow_deadlock : bool
        Whether our controller installs a plan that can deadlock; otherwise it refuses it.
    buffer : mapping of str to int, optional
        Bytes of queues and ingress buffers of all links; the keys are those of ``buffer`` in
        docs/emulator-protocol.md. None: the defaults, which lose nothing.
    timing : mapping of str to float, optional
        The emulator's top-level numbers on the same page, such as ``tick_us``.
    slow_down : float
        Real seconds that a second of virtual time takes at least.
    host_wait_us : int
        Processor time, in microseconds, for which virtual time waits for the next packets of a host
        that has more to send.
    virtual_clock : bool
        Whether programs on hosts see virtual time (docs/virtual-clock.md); plain links have none.
    watchdog : mapping, optional
        The keys of a link's watchdog in docs/emulator-protocol.md. None: there is none.
    pause_share : float, optional
        Share of time for which a host may pause its link, 1 for no limit. None: the emulator's
        default.
    broadcast_limit : mapping, optional
        The keys of ``broadcast_limit`` of a link in docs/emulator-protocol.md: how much of its line
        a host may fill with broadcasts. None: the emulator's default.
    line_errors : float
        The bit error rate of every line.
    errors_in_a_row : int
        How many frames in a row have errors on average.
    retry : int, optional
        Links repeat frames (docs/retry.md), and give up after that many replays without progress
        (0: never). None: they repeat none.
    switch_settings : mapping, optional
        What switches are like inside (``switch_settings`` in docs/emulator-protocol.md). None: each
        port has buffers of its own.
    controller : {"ryu", "remote", "none"}
        Ours; the user's own, which listens on ``openflow_port``; or none, so that switches have
        only the rules that the user installs.
    openflow_port : int, optional
        TCP port of the controller for switches. None: 6653 with TLS, and of the user's own
        controller; else none, since switches reach ours by a Unix socket. 0: the same, but with TLS
        any free port.
    rest_port : int
        TCP port of our controller for HTTP; 0 means any free port.
    remotes : sequence of (str, int)
        IPv4 address and TCP port of each of the user's own controllers, if ``controller`` is
        ``remote``. Empty: one on 127.0.0.1, on ``openflow_port``.
    controllers : int
        Number of our controllers. One is active, the others are on standby, on other free ports.
    controller_clock : {"real", "virtual"}
        The time in which our controllers live.
    controller_settings : mapping
        Further keys of the controllers' configuration (:class:`knotless.controller.config.Config`).
    tls : bool
        Whether our controllers and all switches show each other certificates of a CA made for this
        fabric.
    links : {"emulated", "plain"}
        Plain links are veth pairs without rates, delays or flow control, and without the emulator.
    datapath : {"auto", "user", "kernel"}
        Open vSwitch's datapath. From the start on it is the one in use, ``user`` or ``kernel``.
    priority : {"normal", "realtime"}, optional
        The priority of all parts, :class:`knotless.emulation.priority.Priority`. None: the default
        of this process, which is normal; from the start on it is the one in use.
    switch_processes : int, optional
        Number of Open vSwitch processes that share the switches. None: as many as suit the fabric,
        which is a number from the start on.
    static_arp : bool, optional
        Whether hosts know all addresses from the start. None: if they could not learn all of them.
    queue_bytes : mapping of str to int
        Bytes of the egress queue at both ends of single cables, by the name of the link or host.
        It is what a link without flow control can hold; other links lose nothing.
    host_prefixes : mapping of str to int
        Length of the IP prefix of single hosts. By default all have 8, or 0 if they could not
        reach each other then.
    mininet : Mininet, optional
        A Mininet object to fill, whose nodes are described but do not run
        (:class:`knotless.mininet.Knotless`). None: a new one.
    host_tags : mapping, optional
        If hosts tag, the plan's :meth:`~knotless.routing.plan.Plan.host_tags`, with which the
        emulator, as the hosts' network interface, tags their frames.
    progress : callable
        Called with one line for each step of the start.

    Attributes
    ----------
    names : Names
        The names of all files, namespaces and interfaces.
    daemon : Daemon
        The client of the link emulator.
    ovs : PrivateOvs
        The fabric's Open vSwitch, from the start on.
    net : Mininet or None
        The Mininet object while the fabric runs.

    Examples
    --------
    As root::

        with EmulatedFabric(load("ring,4"), PlanRequest(engine="updown")) as fabric:
            fabric.host("h1").cmd("ping -c 1 10.0.3.1")
            fabric.cables.cut(fabric.cables.one("s1-s2"))

    """

    fabric: Fabric
    request: PlanRequest = field(default_factory=PlanRequest)
    _: KW_ONLY
    name: str = DEFAULT_NAME
    allow_deadlock: bool = False
    buffer: Mapping[str, int] | None = None
    timing: Mapping[str, float] | None = None
    slow_down: float = 1.0
    host_wait_us: int = 2000
    virtual_clock: bool = True
    watchdog: Mapping[str, Any] | None = None
    pause_share: float | None = None
    broadcast_limit: Mapping[str, float] | None = None
    line_errors: float = 0.0
    errors_in_a_row: int = 1
    retry: int | None = None
    switch_settings: Mapping[str, Any] | None = None
    controller: Literal["ryu", "remote", "none"] = "ryu"
    openflow_port: int | None = None
    rest_port: int = control.REST_PORT
    remotes: Sequence[control.Address] = ()
    controllers: int = 1
    controller_clock: control.Clock = "real"
    controller_settings: Mapping[str, Any] = field(default_factory=dict)
    tls: bool = False
    links: Literal["emulated", "plain"] = "emulated"
    datapath: Choice = "auto"
    priority: Priority | str | None = None
    switch_processes: int | None = None
    static_arp: bool | None = None
    queue_bytes: Mapping[str, int] = field(default_factory=dict)
    host_prefixes: Mapping[str, int] = field(default_factory=dict)
    mininet: Any = field(default=None, repr=False)
    host_tags: wiring.HostTags | None = None
    progress: Callable[[str], None] = lambda _step: None
    names: Names = field(init=False)
    daemon: Daemon = field(init=False)
    ovs: PrivateOvs = field(init=False)
    net: Any = field(init=False, default=None)
    _runtime: Runtime | None = field(init=False, default=None, repr=False)
    _parts_watch: PartsWatch | None = field(init=False, default=None, repr=False)
    _more_ports: list[rest.Ports] = field(init=False, default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.names = names_of(self.name)
        self.priority = options.priority(self.priority)
        self.virtual_clock = self.virtual_clock and self.links == "emulated"
        if self.openflow_port is None:
            is_needed = self.tls or self.controller == "remote"
            self.openflow_port = control.OPENFLOW_PORT if is_needed else 0
        self.daemon = Daemon(self.names.emulator_socket, self.fabric.switch_index)

    @classmethod
    def from_plan(cls, plan: Plan, **settings: Any) -> EmulatedFabric:
        """Return the fabric of a plan; the controller computes the plan again from its request.

        Parameters
        ----------
        plan : Plan
            The plan, whose request and host tags are used.
        **settings
            Other parameters of this class.

        Returns
        -------
        EmulatedFabric
            The fabric, not yet started.

        """
        request, tags = plan.settled_request(), plan.host_tags()
        return cls(plan.fabric, request, host_tags=tags, **settings)

    def start(self) -> None:
        """Start everything, and return when every switch has its rules.

        Raises
        ------
        KnotlessError
            One line: options contradict each other, rights or programs are missing, a fabric
            of this name runs already, or the plan is refused. All that was created is
            removed first, also if this is interrupted.

        """
        validate(self.fabric)
        cables = wiring.wire(self.fabric)
        self.request = options.with_flow_control(
            self.fabric, self.request, links=self.links, controller=self.controller
        )
        if self.request.tagging == "host":
            options.check_tagging(self.fabric, links=self.links, tagged=self.host_tags)
        options.check_controllers(
            controller=self.controller,
            controllers=self.controllers,
            clock=self.controller_clock,
            tls=self.tls,
            links=self.links,
        )
        require_fabrics()
        for address in self._remotes:
            control.require_listening(address)
        self.datapath = in_use = chosen(self.datapath)
        self.switch_processes = options.switch_processes(
            self.switch_processes, self.fabric, links=self.links, datapath=in_use, tls=self.tls
        )
        cables = wiring.divided(cables, self.switch_processes)
        try:
            with uninterrupted():
                self._runtime, was_dead = claim(self.names, self.fabric.name)
            if was_dead:
                self.progress(f"removed the remains of an earlier fabric {self.name!r}")
            self._start(self._runtime, cables, in_use)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all processes and remove everything; calling it again does nothing."""
        with uninterrupted():
            runtime, self._runtime = self._runtime, None
            if self._parts_watch is not None:
                self._parts_watch.stop()
                self._parts_watch = None
            if runtime is None:
                return
            runtime.release()
            for node in self.net.hosts + self.net.switches if self.net else ():
                node.privateDirs = []  # their mounts have gone with the last process of the host
                node.terminate()
            self.net = None

    def __enter__(self) -> Self:
        """Start; see :meth:`start`."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop; see :meth:`stop`."""
        self.stop()

    def host(self, name: str) -> EmulatedHost:
        """Return the Mininet host with this name, which has ``popen``, ``cmd`` and ``pid``.

        Raises
        ------
        EmulationError
            The fabric does not run, or has no such host.

        """
        if self.net is None or name not in self.fabric.host_index:
            raise EmulationError(f"fabric {self.name!r} runs no host {name!r}")
        host: EmulatedHost = self.net[name]
        return host

    def program_environment(self, *, several_hosts: bool = False) -> dict[str, str]:
        """Return the environment variables of programs that are started on hosts.

        Parameters
        ----------
        several_hosts : bool
            Whether the program has sockets in more than one host, so that virtual time waits for it
            as for the programs of each.

        Returns
        -------
        dict of str to str
            Variables to be added to the environment. One marks the program as the fabric's, so
            that it ends with it.

        """
        return program_environment(
            self.names,
            priority=options.priority(self.priority),
            virtual_clock=self.virtual_clock,
            several_hosts=several_hosts,
        )

    @property
    def cables(self) -> Cables:
        """The cables, to cut and mend."""
        cables = wiring.divided(wiring.wire(self.fabric), self.switch_processes or 1)
        return Cables(self.names, cables, self.links)

    @property
    def switches(self) -> Switches:
        """The switches, to stop and start."""
        return Switches(self.names)

    def set_flow_control(self, flow_control: FlowControl) -> None:
        """Change the flow control of all links; empties all queues, resets all counters.

        The rules stay, so the plan may deadlock under the new flow control.

        Parameters
        ----------
        flow_control : FlowControl
            The links that pause, and by which standard.

        Raises
        ------
        EmulationError
            The fabric does not run, or the emulator refuses.

        """
        RunningFabric(self.names).set_flow_control(flow_control)
        self.request = self.request.but(flow_control=flow_control)
        self._running().state.settings = self.settings()

    def controller_status(self) -> dict[str, Any]:
        """Return the ``GET /status`` of the controller; of several, of the active one.

        Raises
        ------
        EmulationError
            No controller answers.

        """
        return rest.status_of(self.controller_ports)

    def restart_controller(self) -> None:
        """Kill the controllers, as a crash would, start new ones, and wait until all is ready.

        Raises
        ------
        EmulationError
            The fabric does not run, or the new controllers do not become ready.

        """
        runtime = self._running()
        for number in range(self.controllers):
            role = role_of("controller", number)
            runtime.children[role].kill()
            runtime.stop(role)
        self._start_controllers(runtime)
        control.await_ready(runtime, self.controller_ports)

    def _running(self) -> Runtime:
        if self._runtime is None:
            raise EmulationError(f"fabric {self.name!r} is not running")
        # Commands in other processes may have started parts again.
        if (current := state.read(self.names)) is not None:
            self._runtime.state.processes = current.processes
        return self._runtime

    def _start(self, runtime: Runtime, cables: tuple[wiring.Cable, ...], in_use: Datapath) -> None:
        names = self.names
        self._parts_watch = PartsWatch(runtime)
        self._parts_watch.start()
        names.fabric_file.write_text(files.to_text(self.fabric), encoding="utf-8")
        if self.host_tags is not None:
            names.tags_file.write_text(json.dumps(self.host_tags), encoding="utf-8")
        if self.tls:
            from knotless.emulation import certificate_authority

            certificate_authority.create(names.tls_directory)
        names.ovs_directory.mkdir(mode=0o700)  # also of the socket to the controllers
        self._configure_controllers()
        runtime.state.settings = self.settings()
        if self.controller_clock == "real":
            self._start_controllers(runtime)
        switches = wiring.switches_namespaces(cables, names)
        runtime.state.namespaces = [
            *switches,
            names.links_namespace,
            *(names.host_namespace(host.name) for host in self.fabric.hosts),
        ]
        runtime.save()
        self.progress(f"namespaces and Open vSwitch, {TEXTS[in_use]}")
        for space in (*switches, names.links_namespace):
            namespaces.add(space)
        processes = wiring.process_of_switches(cables)
        self.ovs = PrivateOvs(runtime, in_use, processes, interface_names(self.fabric))
        self.ovs.start()
        self.progress(f"{len(self.fabric.hosts)} hosts")
        self.net = nodes.make(
            self.fabric,
            names,
            self.ovs,
            environment=self.program_environment(),
            prefixes=self.host_prefixes,
            net=self.mininet,
        )
        write_shells(names, {node.name: node.pid for node in self.net.hosts})
        self.progress(f"{len(cables)} links")
        self._make_links(cables)
        emulated = self.links == "emulated"
        slow_down = self.slow_down if emulated else 1.0
        nodes.configure(self.net, self.fabric, self.static_arp, held=emulated, slow_down=slow_down)
        if self.links == "emulated":
            self.progress("link emulator")
            config = wiring.emulator_config(
                cables,
                names,
                flow_control=resolved(self.request.flow_control, 1),
                buffer=self.buffer,
                queue_bytes=self.queue_bytes,
                watchdog=self.watchdog,
                pause_share=self.pause_share,
                broadcast_limit=self.broadcast_limit,
                line_errors=(self.line_errors, self.errors_in_a_row),
                settings={
                    "slow_down": self.slow_down,
                    "host_wait_us": self.host_wait_us,
                    "switch_processes": self.ovs.pid_files,
                    "process_of": self.ovs.process_of,
                    "datapath": in_use,
                    "controller_sends_on": self.controller == "remote",
                    "clock_page": str(names.clock_page),
                    "senders_mark": f"{SENDERS_MARK}={self.name}",
                    # In the fabric's order, as in the simulator: events of the same time and random
                    # faults depend on the numbers of channels.
                    "switches": [switch.name for switch in self.fabric.switches],
                    "declared_groups": addresses(dict(self.request.multicast)),
                    "switch_settings": self.switch_settings,
                    "retry": self.retry,
                    **(self.timing or {}),
                },
                tags=self.host_tags,
            )
            emulator.start(runtime, config)
        if self.controller_clock == "virtual":
            self._start_controllers(runtime)
        self.progress(f"{len(self.fabric.switches)} switches")
        if self.controller != "none":
            for number, ports in enumerate(self.controller_ports):
                if self.controller == "ryu":
                    control.await_listening(runtime, ports.openflow, tls=self.tls, number=number)
                if self.controller == "remote" or self.tls:
                    address = self._remotes[number] if self._remotes else ports.openflow_address
                    control.start_forwarder(runtime, address, tls=self.tls, number=number)
        if self.tls:
            own = certificates.paths(names.tls_directory)
            self.ovs.use_tls(own.switches, own.authority)
        self.ovs.add_switches(self.fabric.switches, wiring.ports(cables), self._targets)
        if self.controller == "ryu":
            self.progress("rules")
            control.await_ready(runtime, self.controller_ports)
        elif self.controller == "remote":
            self.progress("waiting for the controller to greet every switch")
            control.await_connected(self.ovs)
        runtime.state.phase = "ready"
        runtime.save()
        self.net.running = RunningFabric(names)

    def settings(self) -> dict[str, Any]:
        """Return the options with which this fabric was started, as values for JSON."""
        keys = ("allow_deadlock", "controller", "controller_clock", "openflow_port", "rest_port")
        paced = ("slow_down", "host_wait_us", "virtual_clock")
        limits = ("watchdog", "pause_share", "broadcast_limit", "switch_settings")
        switches = ("datapath", "switch_processes", "priority")
        lines = ("line_errors", "errors_in_a_row", "retry")
        stored = (*keys, "tls", "links", *switches, *paced, *limits, *lines)
        ports = [[pair.openflow, pair.rest] for pair in self.controller_ports]
        own = {key: getattr(self, key) for key in stored} | {"controller_ports": ports}
        if self._remotes:
            own["remotes"] = [list(address) for address in self._remotes]
        if self.host_prefixes:
            own["host_prefixes"] = dict(self.host_prefixes)
        return self.request.as_settings() | own

    @property
    def controller_ports(self) -> list[rest.Ports]:
        """The ports on which the controllers listen."""
        if self.remotes:
            return [rest.Ports(port, self.rest_port) for _, port in self.remotes]
        return [rest.Ports(self.openflow_port or 0, self.rest_port), *self._more_ports]

    @property
    def _remotes(self) -> Sequence[control.Address]:
        """The addresses of the user's own controllers, none if there are none."""
        if self.controller != "remote":
            return ()
        return self.remotes or [(control.ADDRESS, self.openflow_port or 0)]

    @property
    def _targets(self) -> list[str]:
        """Open vSwitch's names of the controllers."""
        count = 0 if self.controller == "none" else len(self.controller_ports)
        return [control.target(self.names, number, tls=self.tls) for number in range(count)]

    def _configure_controllers(self) -> None:
        if self.controller != "ryu":
            return
        if self.tls or self.openflow_port:
            self.openflow_port = control.free_port(self.openflow_port or 0, "OpenFlow port")
        self.rest_port = control.free_port(self.rest_port, "REST port")
        if not self._more_ports:
            for _ in range(self.controllers - 1):
                openflow = control.free_port(0, "OpenFlow port") if self.tls else 0
                self._more_ports.append(rest.Ports(openflow, control.free_port(0, "REST port")))
        plan = self.request.as_settings() | {"allow_deadlock": self.allow_deadlock}
        plan |= self.controller_settings
        every, emulated = self.controller_ports, self.links == "emulated"
        rest_ports = [ports.rest for ports in every]
        control.write_config(self.names, plan, rest_ports, tls=self.tls, emulated=emulated)

    def _start_controllers(self, runtime: Runtime) -> None:
        if self.controller != "ryu":
            return
        self.progress("controller")
        tls = certificates.paths(self.names.tls_directory) if self.tls else None
        for number, ports in enumerate(self.controller_ports):
            control.start(runtime, ports, tls, self.controller_clock, number)

    def _make_links(self, cables: tuple[wiring.Cable, ...]) -> None:
        names = self.names
        if self.links == "emulated":
            pairs, where = wiring.emulated_pairs(cables, names), names.links_namespace
        else:
            pairs, where = wiring.plain_pairs(cables, names), names.switches_namespace()
        namespaces.ip_batch(pairs, namespace=where)
        for process, commands in wiring.switch_ends(cables).items():
            namespaces.ip_batch(commands, namespace=names.switches_namespace(process))
        daemon = self.daemon if self.links == "emulated" else None
        for cable in cables:
            ends = (self.net[cable.a.owner], self.net[cable.b.owner])
            self.net.links.append(EmulatedLink(*ends, cable=cable, daemon=daemon))
