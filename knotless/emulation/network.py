"""Running fabrics: switches, hosts, link emulator and controller, from start to removal.

with EmulatedFabric(load("ring,4"), PlanRequest(engine="updown"), name="mine") as fabric:
    fabric.host("h1").popen(["ping", "-c", "1", "10.0.3.1"]).wait()
    fabric.daemon.counters()
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, Self

from knotless.base.errors import EmulationError
from knotless.base.flow_control import FlowControl
from knotless.emulation import certificates, namespaces, nodes, options, rest, wiring
from knotless.emulation import controller as control
from knotless.emulation import daemon as emulator
from knotless.emulation.cuts import Cables
from knotless.emulation.daemon import Daemon
from knotless.emulation.datapath import TEXTS, Choice, Datapath, chosen
from knotless.emulation.host import EmulatedHost
from knotless.emulation.link import EmulatedLink
from knotless.emulation.names import DEFAULT_NAME, SENDERS_MARK, Names, names_of, role_of
from knotless.emulation.ovs import PrivateOvs
from knotless.emulation.priority import PRIORITY
from knotless.emulation.runtime import Runtime, claim, require_root
from knotless.emulation.signals import uninterrupted
from knotless.emulation.tools import require_tools
from knotless.emulation.virtual_clock import program_environment
from knotless.routing.flow_control import resolved
from knotless.routing.plan import Plan
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats import files
from knotless.topologies.validate import validate


@dataclass
class EmulatedFabric:
    """A fabric to run, and between :meth:`start` and :meth:`stop` the running one.

    ``request`` is the request for the plan, which our controller computes; without emulated links
    there is no flow control. Our controller refuses a plan that can deadlock unless
    ``allow_deadlock``. ``buffer`` (bytes; keys as in docs/emulator-protocol.md) applies to all
    links; ``timing`` holds the emulator's top-level numbers such as ``tick_us``. A second of
    virtual time takes at least ``slow_down`` seconds, and waits ``host_wait_us`` of processor time
    for the next packets of a host that has more to send. With ``virtual_clock`` programs on hosts
    see virtual time (docs/virtual-clock.md), and with a virtual ``controller_clock`` so do our
    controllers. ``watchdog`` holds the keys of a link's watchdog on that page; ``pause_share`` is
    the share of time for which a host may pause its link, 1 for no limit, None for the emulator's
    default. ``controller`` is ours, the user's own on ``openflow_port`` (remote), or none: then
    switches have only rules that the user installs. Port 0 means any free port. With several
    ``controllers`` of ours, one is active and the others are on standby, on other free ports. With
    ``tls`` our controllers and all switches show each other certificates of a CA made for this
    fabric. ``controller_settings`` are further keys of the controllers' configuration. ``links``
    plain omits the emulator: veth pairs without rates or flow control. ``datapath`` is Open
    vSwitch's; from the start on it is the one in use, ``user`` or ``kernel``. Open vSwitch has the
    real-time priority ``switch_priority``, or none if that is 0. Its ``switch_processes`` share the
    switches; None: as many as suit the fabric, which is a number from the start on. With
    ``static_arp`` hosts know all addresses from the start; None enables it if hosts could not learn
    all of them. If hosts tag, ``host_tags`` is the plan's ``host_tags()``, with which the emulator,
    as the hosts' network interface, tags their frames. ``progress`` is called with one line for
    each step.
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
    virtual_clock: bool = False
    watchdog: Mapping[str, Any] | None = None
    pause_share: float | None = None
    controller: Literal["ryu", "remote", "none"] = "ryu"
    openflow_port: int = control.OPENFLOW_PORT
    rest_port: int = control.REST_PORT
    controllers: int = 1
    controller_clock: control.Clock = "real"
    controller_settings: Mapping[str, Any] = field(default_factory=dict)
    tls: bool = False
    links: Literal["emulated", "plain"] = "emulated"
    datapath: Choice = "auto"
    switch_priority: int = PRIORITY
    switch_processes: int | None = None
    static_arp: bool | None = None
    host_tags: wiring.HostTags | None = None
    progress: Callable[[str], None] = lambda _step: None
    names: Names = field(init=False)
    daemon: Daemon = field(init=False)
    ovs: PrivateOvs = field(init=False)
    net: Any = field(init=False, default=None)
    _runtime: Runtime | None = field(init=False, default=None, repr=False)
    _more_ports: list[rest.Ports] = field(init=False, default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.names = names_of(self.name)
        self.daemon = Daemon(self.names.emulator_socket, self.fabric.switch_index)

    @classmethod
    def of(cls, plan: Plan, **settings: Any) -> EmulatedFabric:
        """Return the fabric of a plan; the controller computes the plan again from its request."""
        request, tags = plan.settled_request(), plan.host_tags()
        return cls(plan.fabric, request, host_tags=tags, **settings)

    def start(self) -> None:
        """Start everything, and return when every switch has its rules.

        Raises :class:`knotless.base.errors.KnotlessError`, of one line, if this fails or is
        interrupted; all that was created is removed first.
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
        require_root()
        require_tools()
        if self.controller == "remote":
            control.require_listening(self.openflow_port)
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
            if runtime is None:
                return
            runtime.release()
            for node in self.net.hosts + self.net.switches if self.net else ():
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
        """Return the Mininet host with this name: ``popen``, ``cmd``, ``pid``."""
        if self.net is None or name not in self.fabric.host_index:
            raise EmulationError(f"fabric {self.name!r} runs no host {name!r}")
        host: EmulatedHost = self.net[name]
        return host

    def program_environment(self, *, several_hosts: bool = False) -> dict[str, str]:
        """Return the environment variables of programs that are started on hosts.

        ``several_hosts`` is for a program with sockets in more than one host.
        """
        return program_environment(
            self.names, virtual_clock=self.virtual_clock, several_hosts=several_hosts
        )

    @property
    def cables(self) -> Cables:
        """The cables, to cut and mend."""
        cables = wiring.divided(wiring.wire(self.fabric), self.switch_processes or 1)
        return Cables(self.names, cables, self.links)

    def set_flow_control(self, flow_control: FlowControl) -> None:
        """Change it on all links: empties all queues, resets all counters, keeps the rules."""
        self.daemon.reset(flow_control=flow_control)
        self.request = self.request.but(flow_control=flow_control)
        self._running().state.settings = self.settings()
        self._running().save()

    def controller_status(self) -> dict[str, Any]:
        """Return the ``GET /status`` of the controller; of several, of the active one."""
        return rest.status_of(self.controller_ports)

    def restart_controller(self) -> None:
        """Kill the controllers, as a crash would, start new ones, and wait until all is ready."""
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
        return self._runtime

    def _start(self, runtime: Runtime, cables: tuple[wiring.Cable, ...], in_use: Datapath) -> None:
        names = self.names
        names.fabric_file.write_text(files.to_text(self.fabric), encoding="utf-8")
        if self.host_tags is not None:
            names.tags_file.write_text(json.dumps(self.host_tags), encoding="utf-8")
        if self.tls:
            from knotless.emulation import certificate_authority

            certificate_authority.create(names.tls_directory)
        self._configure_controllers()
        if self.controller_clock == "real":
            self._start_controllers(runtime)
        switches = wiring.switches_namespaces(cables, names)
        runtime.state.namespaces = [
            *switches,
            names.links_namespace,
            *(names.host_namespace(host.name) for host in self.fabric.hosts),
        ]
        runtime.state.settings = self.settings()
        runtime.save()
        self.progress(f"namespaces and Open vSwitch, {TEXTS[in_use]}")
        for space in (*switches, names.links_namespace):
            namespaces.add(space)
        processes = wiring.process_of_switches(cables)
        self.ovs = PrivateOvs(runtime, in_use, processes, self.switch_priority)
        self.ovs.start()
        self.progress(f"{len(self.fabric.hosts)} hosts")
        self.net = nodes.make(
            self.fabric,
            names,
            self.ovs,
            ports=wiring.ports(cables),
            controllers=self._targets,
            environment=self.program_environment(),
        )
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
                watchdog=self.watchdog,
                pause_share=self.pause_share,
                settings={
                    "slow_down": self.slow_down,
                    "host_wait_us": self.host_wait_us,
                    "switch_processes": self.ovs.pids,
                    "datapath": in_use,
                    "controller_sends_on": self.controller == "remote",
                    "clock_page": str(names.clock_page),
                    "senders_mark": f"{SENDERS_MARK}={self.name}",
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
                control.await_listening(runtime, ports.openflow, number)
                control.start_forwarder(runtime, ports.openflow, tls=self.tls, number=number)
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

    def settings(self) -> dict[str, Any]:
        """Return the options with which this fabric was started."""
        keys = ("allow_deadlock", "controller", "controller_clock", "openflow_port", "rest_port")
        paced = ("slow_down", "host_wait_us", "virtual_clock", "watchdog", "pause_share")
        stored = (*keys, "tls", "links", "datapath", "switch_processes", *paced)
        ports = [[at.openflow, at.rest] for at in self.controller_ports]
        own = {key: getattr(self, key) for key in stored} | {"controller_ports": ports}
        return self.request.model_dump() | own

    @property
    def controller_ports(self) -> list[rest.Ports]:
        """Where the controllers listen."""
        return [rest.Ports(self.openflow_port, self.rest_port), *self._more_ports]

    @property
    def _targets(self) -> list[str]:
        """Open vSwitch's names of the controllers."""
        count = 0 if self.controller == "none" else self.controllers
        return [control.target(self.names, number, tls=self.tls) for number in range(count)]

    def _configure_controllers(self) -> None:
        if self.controller != "ryu":
            return
        self.openflow_port = control.free_port(self.openflow_port, "OpenFlow port")
        self.rest_port = control.free_port(self.rest_port, "REST port")
        if not self._more_ports:
            self._more_ports = [
                rest.Ports(control.free_port(0, "OpenFlow port"), control.free_port(0, "REST port"))
                for _ in range(self.controllers - 1)
            ]
        plan = self.request.model_dump() | {"allow_deadlock": self.allow_deadlock}
        plan |= self.controller_settings
        every, emulated = self.controller_ports, self.links == "emulated"
        control.write_config(self.names, plan, [at.rest for at in every], emulated=emulated)

    def _start_controllers(self, runtime: Runtime) -> None:
        if self.controller != "ryu":
            return
        self.progress("controller")
        tls = certificates.paths(self.names.tls_directory) if self.tls else None
        for number, at in enumerate(self.controller_ports):
            control.start(runtime, at, tls, self.controller_clock, number)

    def _make_links(self, cables: tuple[wiring.Cable, ...]) -> None:
        names = self.names
        if self.links == "emulated":
            pairs, where = wiring.emulated_pairs(cables, names), names.links_namespace
        else:
            pairs, where = wiring.plain_pairs(cables, names), names.switches_namespace()
        namespaces.ip_batch(pairs, namespace=where)
        for process, commands in wiring.switch_ends(cables).items():
            namespaces.ip_batch(commands, namespace=names.switches_namespace(process))
        for cable in cables:
            link = EmulatedLink(self.net[cable.a.owner], self.net[cable.b.owner], cable=cable)
            self.net.links.append(link)
