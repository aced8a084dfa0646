"""The controller of a running fabric: Ryu in the machine's own network namespace."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import yaml

from common import ports
from common.errors import EmulationError
from emulation import certificates, rest, state
from emulation.certificates import Certificates
from emulation.names import NETNS_DIRECTORY, REPOSITORY, Names
from emulation.ovs import PrivateOvs
from emulation.runtime import Runtime, machine_lock
from emulation.state import State

ADDRESS = rest.ADDRESS
OPENFLOW_PORT = 6653
REST_PORT = 8080
READY_LIMIT_S = 60.0
"""Time for every switch to receive its rules, in addition to :data:`RULES_PER_S`."""
RULES_PER_S = 5000
_POLL_S = 0.05


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
    names: Names, plan: dict[str, Any], rest_port: int, *, emulated: bool = True
) -> None:
    """Write the controller's configuration; ``plan`` holds the plan's keys.

    ``emulated`` is whether the link emulator runs.
    """
    config = {
        "fabric": names.fabric_file.name,
        **{key: value for key, value in plan.items() if value is not None},
        "state_file": names.overrides_file.name,
        "rest": {"host": ADDRESS, "port": rest_port, "token_file": names.token_file.name},
    }
    if emulated:
        config["emulator"] = names.emulator_socket.name
    names.controller_file.write_text(yaml.safe_dump(config), encoding="utf-8")


def start(runtime: Runtime, openflow_port: int, tls: Certificates | None) -> None:
    """Start ``ryu-manager`` with the configuration of this runtime's fabric.

    Returns at once: the switches are created in the meantime (:func:`await_ready`).
    """
    manager = Path(sys.executable).with_name("ryu-manager")
    command = str(manager) if manager.is_file() else shutil.which("ryu-manager")
    if command is None:
        raise EmulationError("ryu-manager is not installed: run 'tools/setup.sh'")
    port = [f"--ofp-{'tcp' if tls is None else 'ssl'}-listen-port", str(openflow_port)]
    if tls is not None:
        own = tls.controller
        port += ["--ctl-privkey", str(own.key), "--ctl-cert", str(own.certificate)]
        port += ["--ca-certs", str(tls.authority)]
    runtime.spawn(
        "controller",
        [command, "--ofp-listen-host", ADDRESS, *port, "controller/app.py"],
        environment={"KNOTLESS_CONFIG": str(runtime.names.controller_file)},
        directory=REPOSITORY,
    )


def restart(names: Names) -> dict[str, Any]:
    """Start the controller of a running fabric again, from any process, and wait until it is ready.

    Its configuration file is read again. A controller that still runs is ended first; the switches
    keep their rules in the meantime. Returns its status. Raises :class:`EmulationError` if the
    fabric does not run, or has another controller.
    """
    with machine_lock():
        found = state.require_running(names)
        settings = found.settings
        if settings.get("controller") != "ryu":
            raise EmulationError(f"fabric {names.name!r} was started without our own controller")
        if "controller" in found.missing() and (other := by_hand(found)) is not None:
            raise EmulationError(
                f"a controller that was started by hand (pid {other['pid']}) serves fabric"
                f" {names.name!r}: end it first"
            )
        runtime = Runtime(names, found)
        runtime.stop("controller")
        tls = certificates.paths(names.tls_directory) if settings.get("tls") else None
        free_port(settings["openflow_port"], "OpenFlow port")
        free_port(settings["rest_port"], "REST port")
        start(runtime, settings["openflow_port"], tls)
    return await_ready(runtime, settings["rest_port"])


def by_hand(found: State) -> dict[str, Any] | None:
    """Return the status of a controller that answers for a fabric whose own one has ended.

    None if none answers, or if it is the controller of another fabric.
    """
    try:
        answer = rest.status(int(found.settings.get("rest_port", REST_PORT)))
    except EmulationError:
        return None
    return answer if answer.get("fabric") == found.fabric and "pid" in answer else None


def await_listening(runtime: Runtime, openflow_port: int) -> None:
    """Wait until our controller, if there is one, accepts connections.

    A switch whose connection is refused retries only after seconds. Raises
    :class:`EmulationError` with the controller's reason if the controller exits first.
    """
    child = runtime.children.get("controller")
    deadline = time.monotonic() + READY_LIMIT_S
    while child is not None and time.monotonic() < deadline:
        if child.poll() is not None:
            raise EmulationError(f"the controller has ended: {_reason(runtime)}")
        with socket.socket() as probe:
            if probe.connect_ex((ADDRESS, openflow_port)) == 0:
                return
        time.sleep(_POLL_S)


def require_listening(openflow_port: int) -> None:
    """Raise :class:`EmulationError` unless the user's own controller listens on the port."""
    with socket.socket() as probe:
        if probe.connect_ex((ADDRESS, openflow_port)) != 0:
            raise EmulationError(
                f"no controller listens on {ADDRESS}:{openflow_port}: "
                "start it first, for example 'ryu-manager controller/app.py'"
            )


def await_connected(ovs: PrivateOvs) -> None:
    """Wait until the user's own controller is connected to every switch.

    Rules are left to that controller. Raises :class:`EmulationError`, naming a switch, if some
    are not connected in time.
    """
    deadline = time.monotonic() + READY_LIMIT_S
    while missing := sorted(name for name, there in ovs.connected().items() if not there):
        if time.monotonic() > deadline:
            raise EmulationError(
                f"the controller is not connected to {missing[0]} and {len(missing) - 1} more "
                f"switches after {READY_LIMIT_S:.0f} s: does it support OpenFlow 1.3?"
            )
        time.sleep(_POLL_S)


def start_forwarder(runtime: Runtime, openflow_port: int, *, tls: bool) -> None:
    """Start the forwarder from the switches to any controller on ``openflow_port``."""
    namespace = NETNS_DIRECTORY / runtime.names.switches_namespace
    where = f"{namespace}:{OPENFLOW_PORT}" if tls else str(runtime.names.controller_socket)
    child = runtime.spawn(
        "forwarder",
        [
            *(sys.executable, "-m", "emulation.forwarder"),
            *(where, str(openflow_port)),
        ],
        directory=REPOSITORY,
        stdout=subprocess.PIPE,
    )
    runtime.await_ready("forwarder", child)


def await_ready(runtime: Runtime, rest_port: int) -> dict[str, Any]:
    """Wait until every switch has acknowledged exactly its rules; return the status.

    Raises :class:`EmulationError` with the controller's last log line if it exits, or with its
    problems if it is not ready in time.
    """
    begun = time.monotonic()
    problems: list[str] = ["it does not answer"]
    limit_s = READY_LIMIT_S
    while time.monotonic() - begun < limit_s:
        child = runtime.children["controller"]
        if child.poll() is not None:
            raise EmulationError(f"the controller has ended: {_reason(runtime)}")
        try:
            found = rest.status(rest_port)
        except EmulationError:
            pass
        else:
            if found.get("ready"):
                return found
            problems = [str(problem) for problem in found.get("problems", [])]
            rules = int((found.get("plan") or {}).get("rules") or 0)
            limit_s = READY_LIMIT_S + rules / RULES_PER_S
        time.sleep(_POLL_S)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    raise EmulationError(
        f"the controller is not ready after {limit_s:.0f} s: "
        f"{problems[0] if problems else 'switches have not acknowledged their rules'}{more}"
    )


def _reason(runtime: Runtime) -> str:
    """Why a controller exited: its own error line, or the last line of its log."""
    text = runtime.names.log_file("controller").read_text(encoding="utf-8", errors="replace")
    own = [line for line in text.splitlines() if line.startswith("knotless: ")]
    return own[-1].removeprefix("knotless: ") if own else runtime.last_words("controller")
