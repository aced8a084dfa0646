"""Running fabrics in scripts and notebooks: ``with knotless.fabric("ring,4") as fabric: ...``.

Everything is as in :mod:`knotless.mininet`, without Mininet's words.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from types import ModuleType
from typing import Any

from knotless.base.engine_name import AUTO_ENGINE
from knotless.base.errors import EmulationError
from knotless.base.suggestions import suggestion
from knotless.emulation.names import DEFAULT_NAME, names_of
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.options import checked_plan
from knotless.emulation.running_fabric import RunningFabric
from knotless.routing.engine import engine_named
from knotless.routing.request import OPTIONS, PlanRequest
from knotless.topologies import load
from knotless.topologies.fabric import Fabric, with_lines

__all__ = ["FabricSession", "check_options", "fabric", "fabric_to_run", "running"]

PLAN_OPTIONS = frozenset(OPTIONS)
_OWN = {"fabric", "request", "_", "name", "progress"}
_OF_MININET = {"queue_bytes", "host_prefixes", "mininet", "host_tags"}
FABRIC_OPTIONS = frozenset(
    field.name
    for field in fields(EmulatedFabric)
    if field.init and field.name not in _OWN | _OF_MININET
)


class FabricSession:
    """A fabric that runs from :meth:`start` to :meth:`stop`, or for a ``with`` block."""

    def __init__(self, emulated: EmulatedFabric) -> None:
        self._emulated = emulated

    def start(self) -> RunningFabric:
        """Start everything; return when every switch has its rules.

        Returns
        -------
        RunningFabric
            The running fabric.

        Raises
        ------
        KnotlessError
            This is not root, or a part does not start. All that was created is removed.

        """
        self._emulated.start()
        return RunningFabric(self._emulated.names)

    def stop(self) -> None:
        """End all processes and remove everything; calling it again does nothing."""
        self._emulated.stop()

    def __enter__(self) -> RunningFabric:
        """Start; see :meth:`start`."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop; see :meth:`stop`."""
        self.stop()


def fabric(
    spec: Fabric | str,
    *,
    name: str = DEFAULT_NAME,
    rate_mbps: float | None = None,
    delay_us: float | None = None,
    progress: Callable[[str], None] = lambda _step: None,
    **options: Any,
) -> FabricSession:
    """Return a fabric to run: a context manager whose value is the running fabric.

    Parameters
    ----------
    spec : Fabric or str
        The fabric, or its spec or file.
    name : str
        The name of the running fabric, by which ``knotless --name`` finds it.
    rate_mbps, delay_us : float, optional
        Rate and one-way delay of all links. None: each link keeps its own.
    progress : callable
        Called with one line for each step of the start.
    **options
        Fields of :class:`knotless.routing.request.PlanRequest`, such as ``engine`` and
        ``flow_control``, and of :class:`knotless.emulation.network.EmulatedFabric`, such as
        ``allow_deadlock`` and ``virtual_clock``.

    Returns
    -------
    FabricSession
        The fabric, not yet started.

    Raises
    ------
    KnotlessError
        There is no such fabric or option, or the plan can deadlock and ``allow_deadlock`` is not
        given.

    Examples
    --------
    As root::

        with knotless.fabric("ring,4", engine="updown") as ring:
            print(ring.run("h1", "ping", "-c", "1", "h3").stdout)
            ring.cut("s1-s2")
            print(ring.deadlock())

    >>> fabric("ring,4", engin="updown")
    Traceback (most recent call last):
        ...
    knotless.base.errors.EmulationError: there is no option 'engin'; did you mean 'engine'?

    """
    chosen = load(spec) if isinstance(spec, str) else spec
    chosen = with_lines(chosen, rate_mbps, delay_us)
    return FabricSession(fabric_to_run(chosen, options, name=name, progress=progress))


def running(name: str = DEFAULT_NAME) -> RunningFabric:
    """Return a fabric that runs already, such as one of ``knotless up``.

    Parameters
    ----------
    name : str
        Its name.

    Returns
    -------
    RunningFabric
        The fabric, which goes on when this process ends.

    Raises
    ------
    EmulationError
        No such fabric is running.

    """
    return RunningFabric(names_of(name))


def fabric_to_run(fabric: Fabric, options: Mapping[str, Any], **more: Any) -> EmulatedFabric:
    """Return a fabric to be started, whose plan is checked.

    Parameters
    ----------
    fabric : Fabric
        The fabric.
    options : mapping
        As ``options`` of :func:`fabric`.
    **more
        Further fields of :class:`knotless.emulation.network.EmulatedFabric`.

    Returns
    -------
    EmulatedFabric
        The fabric, not yet started.

    Raises
    ------
    KnotlessError
        An option does not exist, the engine cannot route the fabric, or the plan can deadlock.

    """
    check_options(options)
    request = {key: value for key, value in options.items() if key in PLAN_OPTIONS}
    settings = {key: value for key, value in options.items() if key not in PLAN_OPTIONS}
    decisive = ("links", "controller", "allow_deadlock")
    checked = checked_plan(
        fabric,
        PlanRequest.from_options(**request),
        **{key: settings[key] for key in decisive if key in settings},
    )
    # Several may run, and their ports are found by their names.
    return EmulatedFabric.from_plan(checked.plan, **{"rest_port": 0, **settings}, **more)


def check_options(options: Mapping[str, Any], without: Collection[str] = ()) -> None:
    """Raise EmulationError for an option that does not exist, or is one of ``without``.

    Raises PlanError for a value that no plan takes.
    """
    accepted = (PLAN_OPTIONS | FABRIC_OPTIONS) - {*without}
    for option in options:
        if option not in accepted:
            hint = suggestion(option, accepted, otherwise="see PlanRequest and EmulatedFabric")
            raise EmulationError(f"there is no option {option[:40]!r}; {hint}")
    request = PlanRequest.from_options(
        **{option: value for option, value in options.items() if option in PLAN_OPTIONS}
    )
    if request.engine != AUTO_ENGINE and not request.engine.endswith(".py"):
        engine_named(request.engine)


class _Callable(ModuleType):
    """The module that ``knotless.fabric`` names once it is imported, called as its function."""

    def __call__(self, *args: Any, **options: Any) -> FabricSession:
        return fabric(*args, **options)


sys.modules[__name__].__class__ = _Callable
