"""The interface of routing engines, and their registry.

To add an engine, add a module to ``knotless.routing.engines`` that defines an :class:`Engine`, or
name a file that does: see :func:`loaded_engine`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from knotless.base import python_file
from knotless.base.engine_name import AUTO_ENGINE
from knotless.base.errors import KnotlessError, PlanError
from knotless.base.plugins import Plugins
from knotless.base.suggestions import suggestion
from knotless.routing.graphs.next_hop_sets import NextHopSets
from knotless.routing.graphs.task import Task
from knotless.routing.routes import Routes
from knotless.topologies.fabric import Fabric


@dataclass(frozen=True)
class Engine:
    """A routing engine. A module of :mod:`knotless.routing.engines` defines one or more.

    ``knotless plan --explain`` and the documentation show ``rule``, ``proof`` and ``use``.

    Attributes
    ----------
    name : str
        The name, as after ``--engine``.
    summary : str
        One line.
    route : callable
        Returns the routes of a :class:`~knotless.routing.graphs.task.Task`; raises PlanError. It
        must be deterministic and break ties by a stated rule.
    has_root : bool
        Whether it has a root switch, which the user may choose.
    rule : str
        How paths are chosen.
    proof : str
        Why they cannot deadlock, or that nothing prevents it.
    use : str
        For which fabrics the engine is meant.
    next_hops : callable or None
        For multipath, returns all next hops of a task instead of one for each pair; raises
        PlanError. None: the engine has one path for each pair.
    is_adaptive : bool
        Whether switches choose by their queues: it returns
        :class:`~knotless.routing.choices.choice.ChosenRoutes`, which no OpenFlow or 802.1Q switch
        can follow.
    has_layers : bool
        Whether layers have different paths: by their root if the engine has one, else by
        :attr:`Task.layer <knotless.routing.graphs.task.Task.layer>`.

    """

    name: str
    summary: str
    route: Callable[[Task], Routes]
    has_root: bool = False
    rule: str = ""
    proof: str = ""
    use: str = ""
    next_hops: Callable[[Task], NextHopSets] | None = None
    is_adaptive: bool = False
    has_layers: bool = False


@cache
def engines() -> Mapping[str, Engine]:
    """Return the engines by name, in alphabetical order, without those of users' files.

    Examples
    --------
    >>> engines()["updown"].has_root
    True

    """
    return Plugins("knotless.routing.engines", Engine)


_ADDED: dict[str, Engine] = {}
"""Engines of users' files."""


def add_engine(engine: Engine) -> None:
    """Let :func:`engine_named` find ``engine``; replaces one that was added with this name."""
    _ADDED[engine.name] = engine


def engine_named(name: str) -> Engine:
    """Return the engine called ``name``, which may be that of a file that was loaded.

    Parameters
    ----------
    name : str
        The name of an engine, not ``auto``.

    Returns
    -------
    Engine
        The engine.

    Raises
    ------
    PlanError
        There is none of this name.

    Examples
    --------
    >>> engine_named("updwn")
    Traceback (most recent call last):
        ...
    knotless.base.errors.PlanError: there is no routing engine 'updwn'; did you mean 'updown'?

    """
    registered = engines()
    engine = registered.get(name) or _ADDED.get(name)
    if engine is not None:
        return engine
    if name.endswith(".py"):
        raise PlanError(f"the file {name} is no loaded engine: name it with --engine when you plan")
    hint = suggestion(name, registered)
    raise PlanError(f"there is no routing engine {name[:50]!r}; {hint}")


def next_hops_of(engine: Engine, task: Task) -> NextHopSets:
    """Return all next hops of an engine.

    Raises
    ------
    PlanError
        It has one path for each pair, or there is no path between two switches with hosts.

    """
    if engine.next_hops is None:
        having = [name for name, other in engines().items() if other.next_hops is not None]
        raise PlanError(
            f"multipath: {engine.name} has one path for each pair; engines with several are"
            f" {', '.join(having)}"
        )
    return engine.next_hops(task)


_ENGINES = {
    "clos3": "fattree",
    "cube": "dor",
    "dragonfly": "dragonfly",
    "dragonflyplus": "dragonflyplus",
    "fattree": "fattree",
    "fattree2": "fattree",
    "fattree3": "fattree",
    "fullmesh": "hyperx",
    "hyperx": "hyperx",
    "lsft": "lsft",
    "mesh": "dor",
    "polarfly": "sbp",
    "rail": "fattree",
    "ring": "dor",
    "slimfly": "sbp",
    "torus": "dor",
}


def default_engine(fabric: Fabric) -> str:
    """Return the engine for the fabric's family, or updown, which routes any fabric."""
    if fabric.family is None:
        return "updown"
    if fabric.family.options.get("twist"):
        return "cube"
    return _ENGINES.get(fabric.family.name, "updown")


def engine_for(fabric: Fabric, name: str) -> str:
    """Return ``name``, or the default engine of ``fabric`` if ``name`` is ``auto``.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> engine_for(load("torus,4,4"), "auto"), engine_for(load("torus,4,4"), "lash")
    ('dor', 'lash')

    """
    return default_engine(fabric) if name == AUTO_ENGINE else name


def loaded_engine(name: str, directory: Path | None = None) -> str:
    """Return the name of an engine; if it is a Python file, run it and return its whole path.

    The path is relative to ``directory``, by default the current one. The file defines one
    :class:`Engine`, as the modules of :mod:`knotless.routing.engines` do. Only the command line and
    the configuration of the controller load files; a name in a plan, a results folder or an HTTP
    request never does.

    Raises
    ------
    PlanError
        The file cannot be read, raises an exception, or does not define exactly one engine.

    """
    if not name.endswith(".py"):
        return name
    path = (directory or Path()).joinpath(name).absolute()
    values = python_file.run(path, PlanError).values()
    defined = {id(value): value for value in values if isinstance(value, Engine)}
    if len(defined) != 1:
        raise PlanError(
            f"{path}: it defines {len(defined)} engines, and must define one:"
            " ENGINE = Engine(name=.., summary=.., route=route)"
        )
    (engine,) = defined.values()
    add_engine(replace(engine, name=str(path), route=_in_one_line(path, engine.route)))
    return str(path)


def _in_one_line(path: Path, route: Callable[[Task], Routes]) -> Callable[[Task], Routes]:
    """Return ``route`` with its exceptions as errors of one line that names file and line."""

    def routed(task: Task) -> Routes:
        try:
            return route(task)
        except KnotlessError:
            raise
        except Exception as problem:
            raise PlanError(python_file.complaint(path, problem)) from problem

    return routed
