"""The controller of a running fabric, in the machine's own network namespace."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Literal

import psutil
import yaml

from knotless.base import ports
from knotless.base.errors import EmulationError
from knotless.base.package import WORKING_DIRECTORY, python_module
from knotless.emulation import certificates, rest, state
from knotless.emulation.certificates import Certificates
from knotless.emulation.names import NETNS_DIRECTORY, Names, role_of
from knotless.emulation.ovs import PrivateOvs
from knotless.emulation.patience import Patience
from knotless.emulation.runtime import Runtime, machine_lock
from knotless.emulation.state import State
from knotless.emulation.virtual_clock import program_environment

ADDRESS = rest.ADDRESS
Address = rest.Address
CONNECT_LIMIT_S = 5.0
"""Time for a controller on another machine to accept a connection."""
OPENFLOW_PORT = 6653
REST_PORT = rest.REST_PORT
READY_LIMIT_S = 60.0
"""Time for every switch to receive its rules, in addition to :data:`RULES_PER_S`."""
RULES_PER_S = 5000
_POLL_S = 0.05

Clock = Literal["real", "virtual"]


def free_port(wanted: int, what: str) -> int:
    """Return ``wanted`` if nobody listens on it; for 0, any free port.

    Raises :class:`EmulationError`, naming the process that listens if it is visible.
    """
    try:
        return ports.free_port(wanted, ADDRESS)
    except OSError as error:
        raise EmulationError(
            f"{what} {wanted} is taken{_holder(wanted)}: "
            "stop that, or choose another port (see --help)"
        ) from error


def _holder(port: int) -> str:
    """The process that listens on a port, as ``' by NAME (pid N)'``; empty if not visible."""
    for connection in psutil.net_connections("tcp"):
        if (
            connection.status == psutil.CONN_LISTEN
            and connection.laddr
            and connection.laddr.port == port
            and connection.pid
        ):
            try:
                name = psutil.Process(connection.pid).name()
            except psutil.NoSuchProcess:
                continue
            return f" by {name} (pid {connection.pid})"
    return ""


def write_config(
    names: Names,
    plan: dict[str, Any],
    rest_ports: Sequence[int],
    *,
    tls: bool = False,
    emulated: bool = True,
) -> None:
    """Write the configuration of all controllers; ``plan`` holds the plan's keys.

    ``emulated`` is whether the link emulator runs. Without ``tls`` they listen on Unix sockets.
    """
    socket = str(names.controller_socket().relative_to(names.directory))
    config = {
        "fabric": names.fabric_file.name,
        **{key: value for key, value in plan.items() if value is not None},
        "open_vswitch": names.ovs_directory.name,
        "state_file": names.overrides_file.name,
        **({} if tls else {"openflow_socket": socket}),
        "rest": {"host": ADDRESS, "port": rest_ports[0], "token_file": names.token_file.name},
    }
    if len(rest_ports) > 1:
        config["controllers"] = [f"{ADDRESS}:{port}" for port in rest_ports]
    if emulated:
        config["emulator"] = names.emulator_socket.name
    names.controller_file.write_text(yaml.safe_dump(config), encoding="utf-8")


def start(
    runtime: Runtime, ports: rest.Ports, tls: Certificates | None, clock: Clock, number: int = 0
) -> None:
    """Start ``knotless controller run`` with the configuration of this runtime's fabric.

    A virtual ``clock`` needs the emulator to run, which publishes it (docs/virtual-clock.md).
    Returns at once: the switches are created in the meantime (:func:`await_ready`).
    """
    if find_spec("greenlet") is None:
        raise EmulationError(
            "greenlet is not installed: the extra 'knotless[controller]' brings it"
            " (docs/start/install.md)"
        )
    # Without TLS, port 0 is none at all: the switches use the socket of the configuration.
    options = ["--config", str(runtime.names.controller_file), "--port", str(ports.openflow)]
    options += ["--rest-port", str(ports.rest)] if number else []
    if tls is not None:
        own = tls.controller
        options += ["--tls-key", str(own.key), "--tls-cert", str(own.certificate)]
        options += ["--tls-ca", str(tls.authority)]
    runtime.spawn(
        role_of("controller", number),
        python_module("knotless", "controller", "run", "--host", ADDRESS, *options),
        environment=program_environment(
            runtime.names, priority=runtime.priority, virtual_clock=clock == "virtual"
        ),
        directory=WORKING_DIRECTORY,
    )


def restart(names: Names) -> dict[str, Any]:
    """Start the controller of a running fabric again, from any process, and wait until it is ready.

    Its configuration file is read again. A controller that still runs is ended first; the switches
    keep their rules in the meantime. Of several controllers those that are dead are started, or all
    if none is. Returns the status of the active one. Raises :class:`EmulationError` if the
    fabric does not run, or has another controller.
    """
    with machine_lock():
        fabric_state = state.require_running(names)
        settings = fabric_state.settings
        if settings.get("controller") != "ryu":
            raise EmulationError(f"fabric {names.name!r} was started without our own controller")
        every = rest.ports_of(settings)
        roles = [role_of("controller", number) for number in range(len(every))]
        dead = [number for number, role in enumerate(roles) if role in fabric_state.missing()]
        if dead and (other := by_hand(fabric_state)) is not None:
            raise EmulationError(
                f"a controller that was started by hand (pid {other['pid']}) serves fabric"
                f" {names.name!r}: end it first"
            )
        runtime = Runtime(names, fabric_state)
        tls = certificates.paths(names.tls_directory) if settings.get("tls") else None
        for number in dead or range(len(every)):
            runtime.stop(roles[number])
            if every[number].openflow:
                free_port(every[number].openflow, "OpenFlow port")
            free_port(every[number].rest, "REST port")
            clock = settings.get("controller_clock", "real")
            start(runtime, every[number], tls, clock, number)
    return await_ready(runtime, every)


def by_hand(fabric_state: State) -> dict[str, Any] | None:
    """Return the status of a controller that answers for a fabric whose own one has ended.

    None if none answers, if it is the controller of another fabric, or one of several.
    """
    if len(rest.ports_of(fabric_state.settings)) > 1:
        return None
    try:
        answer = rest.status(int(fabric_state.settings.get("rest_port", REST_PORT)))
    except EmulationError:
        return None
    return answer if answer.get("fabric") == fabric_state.fabric and "pid" in answer else None


def await_listening(runtime: Runtime, openflow_port: int, *, tls: bool, number: int = 0) -> None:
    """Wait until our controller, if there is one, accepts connections of switches.

    They come by its Unix socket, or with ``tls`` to its port. A switch whose connection is refused
    retries only after seconds. Raises :class:`EmulationError` with the controller's reason if the
    controller exits first.
    """
    address: Any = str(runtime.names.controller_socket(number))
    family = socket.AF_UNIX
    if tls:
        address, family = (ADDRESS, openflow_port), socket.AF_INET
    role = role_of("controller", number)
    child = runtime.children.get(role)
    patience = Patience.with_processes(READY_LIMIT_S, child.pid if child else None)
    while child is not None and not patience.is_over():
        if child.poll() is not None:
            raise EmulationError(f"the {role} has ended: {_reason(runtime, role)}")
        with socket.socket(family) as probe:
            if probe.connect_ex(address) == 0:
                return
        time.sleep(_POLL_S)


def require_listening(address: Address) -> None:
    """Raise :class:`EmulationError` unless the user's own controller listens there."""
    if not is_listening(*address):
        raise EmulationError(
            f"no controller listens on {address[0]}:{address[1]}: "
            "start it first, for example 'knotless controller run'"
        )


def is_listening(ip: str, port: int) -> bool:
    """Tell whether something accepts connections there."""
    with socket.socket() as probe:
        probe.settimeout(CONNECT_LIMIT_S)
        return probe.connect_ex((ip, port)) == 0


def await_connected(ovs: PrivateOvs) -> None:
    """Wait until the user's own controller is connected to every switch.

    Rules are left to that controller. Raises :class:`EmulationError`, naming a switch, if some
    are not connected in time.
    """
    patience = Patience.with_processes(READY_LIMIT_S, *ovs.pids)
    while missing := sorted(name for name, there in ovs.connected().items() if not there):
        if patience.is_over():
            raise EmulationError(
                f"the controller is not connected to {missing[0]} and {len(missing) - 1} more "
                f"switches after {READY_LIMIT_S:.0f} s: does it support OpenFlow 1.3?"
            )
        time.sleep(_POLL_S)


def target(names: Names, number: int, *, tls: bool) -> str:
    """Return Open vSwitch's name of a controller, as the switches reach it."""
    if tls:
        return f"ssl:{ADDRESS}:{OPENFLOW_PORT + number}"
    return f"unix:{names.controller_socket(number)}"


def start_forwarder(runtime: Runtime, address: Address, *, tls: bool, number: int = 0) -> None:
    """Start the forwarder from the switches to a controller that listens on ``address``."""
    namespace = NETNS_DIRECTORY / runtime.names.switches_namespace()
    socket_path = runtime.names.controller_socket(number)
    where = f"{namespace}:{OPENFLOW_PORT + number}" if tls else str(socket_path)
    role = role_of("forwarder", number)
    child = runtime.spawn(
        role,
        python_module("knotless.emulation.forwarder", where, f"{address[0]}:{address[1]}"),
        directory=WORKING_DIRECTORY,
        stdout=subprocess.PIPE,
    )
    runtime.await_ready(role, child)


def await_ready(runtime: Runtime, ports: Sequence[rest.Ports]) -> dict[str, Any]:
    """Wait until every switch has acknowledged exactly its rules; return the status.

    Raises :class:`EmulationError` with the controller's last log line if it exits, or with its
    problems if it is not ready in time, or waits for an operator.
    """
    begun = time.monotonic()
    problems: list[str] = ["it does not answer"]
    parts = ("controller", "ovs-vswitchd")
    running = [one.pid for role, one in runtime.state.processes.items() if role.startswith(parts)]
    patience = Patience.with_processes(READY_LIMIT_S, *running)
    while not patience.is_over():
        for role, child in runtime.children.items():
            if role.startswith("controller") and child.poll() is not None:
                raise EmulationError(f"the {role} has ended: {_reason(runtime, role)}")
        try:
            status = rest.status_of(ports)
        except EmulationError:
            pass
        else:
            if status.get("ready"):
                return status
            problems = [str(problem) for problem in status.get("problems", [])]
            switches = status.get("switches", {}).values()
            if status.get("unconfirmed") and all(switch["installed"] for switch in switches):
                break  # only an operator can end that
            rules = int((status.get("plan") or {}).get("rules") or 0)
            patience.limit_s = READY_LIMIT_S + rules / RULES_PER_S
        time.sleep(_POLL_S)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    raise EmulationError(
        f"the controller is not ready after {time.monotonic() - begun:.0f} s: "
        f"{problems[0] if problems else 'switches have not acknowledged their rules'}{more}"
    )


def _reason(runtime: Runtime, role: str) -> str:
    """Return why a controller exited: its own error line, or the last line of its log."""
    text = runtime.names.log_file(role).read_text(encoding="utf-8", errors="replace")
    own = [line for line in text.splitlines() if line.startswith("knotless: ")]
    return own[-1].removeprefix("knotless: ") if own else runtime.last_words(role)
