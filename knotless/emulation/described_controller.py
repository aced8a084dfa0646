"""Controllers that a script names in Mininet's words: one of ours, or one that runs already."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from functools import partial
from typing import Any

from knotless.base.errors import EmulationError
from knotless.emulation.controller import Address, is_listening
from knotless.emulation.mn import (
    Controller,
    DefaultController,
    NullController,
    OVSController,
    RemoteController,
    info,
)

_OURS = (DefaultController, Controller, OVSController)
_OPENFLOW_PORTS = (6653, 6633)


class EmulatedController:
    """A controller of a script: one of ours, or the address of one that runs already.

    Attributes
    ----------
    name : str
        Its name.
    address : (str, int) or None
        IPv4 address and TCP port of one that the user runs; None: ours, which starts with the
        fabric.

    """

    def __init__(self, name: str, address: Address | None) -> None:
        self.name, self.address = name, address
        self.ip, self.port = address or ("127.0.0.1", 0)
        self.waiting = False
        self.shell = None

    def IP(self, intf: object = None) -> str:  # noqa: N802 - Mininet's name
        """Return its IP address."""
        del intf
        return self.ip

    def start(self) -> None:
        """Do nothing: ours start with the fabric, others run already."""

    def stop(self, deleteIntfs: bool = False) -> None:  # noqa: N803 - Mininet's name
        """Do nothing: ours end with the fabric."""

    def terminate(self) -> None:
        """Do nothing: it has no shell."""

    def cmd(self, *_args: Any, **_options: Any) -> str:
        """Raise EmulationError: a controller has no shell."""
        raise EmulationError(f"{self.name} has no shell: 'knotless status' shows the controller")

    sendCmd = popen = cmdPrint = pexec = cmd  # noqa: N815 - Mininet's names

    def intfList(self) -> list[Any]:  # noqa: N802 - Mininet's name
        """Return no interfaces."""
        return []

    def intfNames(self) -> list[str]:  # noqa: N802 - Mininet's name
        """Return no interfaces."""
        return []

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        """Return name and address."""
        what = "knotless" if self.address is None else f"{self.ip}:{self.port}"
        return f"<EmulatedController {self.name}: {what}> "


def controller_of(
    name: Any, controller: Any, params: Mapping[str, Any]
) -> EmulatedController | None:
    """Return the controller that a script names in Mininet's words; None stands for none.

    Parameters
    ----------
    name : str or Controller
        Its name, or the controller itself.
    controller : class, function or Controller
        One of Mininet's classes, a partial of one, or a function that returns one.
    params : mapping
        The parameters, such as ``ip`` and ``port``.

    Raises
    ------
    EmulationError
        It is a controller that Mininet would start, other than its reference controllers.

    Examples
    --------
    >>> controller_of("c0", RemoteController, {"ip": "192.0.2.1", "port": 6633}).address
    ('192.0.2.1', 6633)

    """
    controller, params = unwrapped(controller, params)
    instance = name if isinstance(name, Controller | EmulatedController) else controller
    if isinstance(instance, EmulatedController):
        return instance
    if isinstance(instance, Controller):
        if not isinstance(instance, RemoteController):
            raise _refused_controller(type(instance).__name__)
        address = (str(instance.ip), int(instance.port))
        named = EmulatedController(str(instance.name), address)
        instance.terminate()
        return named
    if controller is None or controller is NullController or controller is False:
        return None
    if controller in _OURS:
        if controller is not DefaultController:
            info(f"*** {name}: a controller of Knotless in place of {controller.__name__}\n")
        return EmulatedController(str(name), None)
    if isinstance(controller, type):
        if not issubclass(controller, RemoteController):
            raise _refused_controller(controller.__name__)
        return EmulatedController(str(name), _address_of(str(name), params))
    if callable(controller):
        return controller_of(controller(name, **params), None, {})
    raise EmulationError(f"controller {name}: {controller!r} is no class of Mininet's controllers")


def _address_of(name: str, params: Mapping[str, Any]) -> Address:
    """Return the address of a RemoteController; raises EmulationError."""
    params = {key: value for key, value in params.items() if value is not None}
    for key in params:
        if key not in ("ip", "port", "protocol", "inNamespace", "verbose"):
            raise EmulationError(f"controller {name}: there is no parameter {key[:40]!r}")
    if params.get("protocol", "tcp") != "tcp":
        raise EmulationError(f"controller {name}: protocol={params['protocol']!r}: only tcp")
    ip, _, port = str(params.get("ip", "127.0.0.1")).partition(":")
    try:
        ipaddress.IPv4Address(ip)
        number = int(port or params.get("port") or 0)
    except ValueError:
        raise EmulationError(
            f"controller {name}: write its address as ip='192.0.2.1', port=6653"
        ) from None
    # Without a port Mininet takes the first of these on which a controller listens.
    tried = [number] if number else [*filter(partial(is_listening, ip), _OPENFLOW_PORTS)]
    return (ip, tried[0] if tried else _OPENFLOW_PORTS[0])


def _refused_controller(kind: str) -> EmulationError:
    return EmulationError(
        f"controller {kind}: it is not started here: start it yourself, and name it with"
        " RemoteController; without any, ours starts"
    )


def unwrapped(given: Any, params: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the class or function of a partial, and its parameters, which ``params`` replace."""
    params = dict(params)
    while isinstance(given, partial):
        params = {**given.keywords, **params}
        given = given.func
    return given, params
