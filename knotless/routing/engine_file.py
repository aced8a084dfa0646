"""Routing engines in Python files of users, as ``--engine ./my_engine.py`` loads them.

The file defines one :class:`knotless.routing.engine.Engine`, as the modules of
:mod:`knotless.routing.engines` do. Its name is then the path of the file. Only the command line and
the configuration of the controller load files; a name in a plan, a results folder or an HTTP
request never does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from knotless.base import python_file
from knotless.base.errors import KnotlessError, PlanError
from knotless.routing.engine import Engine, add_engine
from knotless.routing.graphs.task import Task
from knotless.routing.routes import Routes

SUFFIX = ".py"


def loaded(name: str, directory: Path | None = None) -> str:
    """Return the name of an engine; if it is a Python file, run it and return its whole path.

    The path is relative to ``directory``, by default the current one.

    Raises
    ------
    PlanError
        The file cannot be read, raises an exception, or does not define exactly one engine.

    """
    if not name.endswith(SUFFIX):
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
