"""Mistakes in calls of the functions of ``import knotless``, as lines that say what is right.

One decorator checks the arguments of all of them: their names, kinds and units.
"""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from knotless.base.errors import KnotlessError, PlanError
from knotless.base.extras import how_to_install
from knotless.base.quantities import MBPS, MICROSECONDS, SECONDS, Unit, number
from knotless.base.suggestions import suggestion
from knotless.routing.request import OPTIONS
from knotless.topologies.fabric import Fabric

Function = TypeVar("Function", bound=Callable[..., Any])

UNITS: Mapping[str, Unit] = {"_mbps": MBPS, "_us": MICROSECONDS, "_s": SECONDS}
"""Ends of the names of numbers, and their units."""


def checked(function: Function) -> Function:
    """Return the function with its arguments checked before it is called.

    Numbers may be texts with a unit, ``rate_mbps="10G"``. Raises KnotlessError for what no call
    can mean, and if a package is missing that an extra brings.
    """
    signature = inspect.signature(function)
    takes_options = any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values())
    options = tuple(OPTIONS) if takes_options else ()
    accepted = [*(name for name in signature.parameters if name != "options"), *options]
    called = getattr(function, "__name__", "knotless")

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        for name in named:
            if name not in accepted:
                hint = suggestion(name, accepted)
                raise PlanError(f"{called}() has no argument {name!r}; {hint}")
        try:
            bound = signature.bind(*args, **named)
        except TypeError as error:
            raise KnotlessError(f"{called}() takes {signature}: {error}") from None
        for name, value in bound.arguments.items():
            bound.arguments[name] = _converted(name, value)
        try:
            return function(*bound.args, **bound.kwargs)
        except ModuleNotFoundError as error:
            if (line := how_to_install(error)) is None:
                raise
            raise KnotlessError(line) from error

    return cast(Function, call)


def _converted(name: str, value: Any) -> Any:
    """Return an argument as the function expects it; raises KnotlessError."""
    if name in ("fabric", "spec"):
        return _fabric(name, value)
    if value is None:
        return None
    if name == "seed":
        return _whole(name, value)
    unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), None)
    if unit is not None:
        return _number(name, value, unit)
    if name in ("pattern", "engines", "flow_control") and not isinstance(value, str):
        raise KnotlessError(f"{name}: {_shown(value)} is no name, such as {_EXAMPLES[name]!r}")
    return value


_EXAMPLES = {"pattern": "shift:2", "engines": "dor,updown", "flow_control": "pfc"}


def _fabric(name: str, value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    # A plan and its rules, which have the fabric, stand for it.
    if isinstance(value, str | Fabric) or hasattr(value, "plan"):
        return value
    raise KnotlessError(
        f"{name}: {_shown(value)} is no fabric, nor its file or spec, such as 'torus,4,4'"
    )


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise KnotlessError(f"{name}: {_shown(value)} is no whole number") from None


def _number(name: str, value: Any, unit: Unit) -> float:
    try:
        return number(value if isinstance(value, str) else repr(float(value)), unit)
    except (TypeError, ValueError):
        raise KnotlessError(f"{name}: {_shown(value)} is no {unit.what} in {unit.bare}") from None
    except KnotlessError as error:
        raise error.within(name) from None


def _shown(value: object) -> str:
    return repr(value)[:40]
