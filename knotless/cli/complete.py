"""Completion of the values of arguments and options (``shell_complete`` of click).

A completer never fails: where it cannot know the values, for example because only root may read
them, it offers none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps

import click
from click.shell_completion import CompletionItem

from knotless.base.errors import KnotlessError

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_FILE = CompletionItem("", type="file")


def _completer(values: Callable[[click.Context], Iterable[str]]) -> Completer:
    @wraps(values)
    def complete(
        context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            candidates = list(values(context))
        except (KnotlessError, OSError):
            candidates = []
        return [CompletionItem(value) for value in candidates if value.startswith(incomplete)]

    return complete


def choices(values: Iterable[str]) -> Completer:
    """Return a completer for a closed set of values."""
    allowed = tuple(values)
    return _completer(lambda _context: allowed)


def fabrics(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the families of fabrics, and files."""
    del context, parameter
    if "/" in incomplete or incomplete.startswith("."):
        return [_FILE]
    from knotless.topologies.registry import families

    items = [CompletionItem(name) for name in families() if name.startswith(incomplete)]
    return items or [_FILE]


@_completer
def engines(_context: click.Context) -> Iterable[str]:
    """Offer the routing engines, and the family's default."""
    from knotless.base.engine_name import AUTO_ENGINE
    from knotless.routing.engine import engines as known

    return (AUTO_ENGINE, *known())


@_completer
def patterns(_context: click.Context) -> Iterable[str]:
    """Offer the traffic patterns."""
    from knotless.traffic.patterns import patterns as known

    return known()


@_completer
def names(_context: click.Context) -> Iterable[str]:
    """Offer the names of running fabrics."""
    from knotless.emulation.names import RUN_DIRECTORY

    return sorted(path.name for path in RUN_DIRECTORY.iterdir() if path.name[:1] != ".")


@_completer
def links(context: click.Context) -> Iterable[str]:
    """Offer the links of the fabric SPEC or, without one, of the running fabric ``--name``."""
    from knotless.topologies import load

    fabric = load(_spec(context))
    for link in fabric.links:
        yield f"{link.a}-{link.b}"
    for host in fabric.hosts:
        yield f"{host.name}-{host.switch}"


@_completer
def parts(context: click.Context) -> Iterable[str]:
    """Offer the links between switches, and the switches."""
    from knotless.topologies import load

    fabric = load(_spec(context))
    yield from (f"{link.a}-{link.b}" for link in fabric.links)
    yield from (switch.name for switch in fabric.switches)


@_completer
def switches(context: click.Context) -> Iterable[str]:
    """Offer the switches of the running fabric ``--name``."""
    from knotless.emulation.names import DEFAULT_NAME, names_of
    from knotless.topologies import load

    fabric = load(str(names_of(context.params.get("name") or DEFAULT_NAME).fabric_file))
    return (switch.name for switch in fabric.switches)


@_completer
def hosts(context: click.Context) -> Iterable[str]:
    """Offer the hosts of the fabric SPEC or, without one, of the running fabric ``--name``."""
    from knotless.topologies import load

    fabric = load(_spec(context))
    return (host.name for host in fabric.hosts)


def _spec(context: click.Context) -> str:
    """Return SPEC or, without one, the file of the running fabric ``--name``."""
    from knotless.emulation.names import DEFAULT_NAME, names_of

    # Where an option lacks its value, click leaves arguments unparsed.
    given = context.params.get("spec") or next(iter(context.args), None)
    name = context.params.get("name") or DEFAULT_NAME
    return given or str(names_of(name).fabric_file)
