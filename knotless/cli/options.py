"""Options that several subcommands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from knotless.base.errors import SpecError
from knotless.base.quantities import SECONDS
from knotless.cli import complete
from knotless.cli.numbers import Number
from knotless.cli.output import say, say_json
from knotless.emulation.names import DEFAULT_NAME

if TYPE_CHECKING:
    from knotless.topologies import Fabric

Command = TypeVar("Command", bound=Callable[..., Any])

HELP_LINES = "knotless.help_lines"
"""In a context's ``meta``: lines of help for each usual option; None: all are explained."""
MAX_SLOW_DOWN = 1e6
"""Largest K of ``--slow-down K``."""


def lower_case(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    """Return a name in lower case, which those of fabrics and places have: ``Ring`` is ``ring``."""
    return None if name is None else name.lower()


own_name_option = click.option(
    "--name",
    default=DEFAULT_NAME,
    show_default=True,
    callback=lower_case,
    help="Name of this fabric.",
)
name_option = click.option(
    "--name",
    default=DEFAULT_NAME,
    callback=lower_case,
    show_default=True,
    help="Name of the running fabric.",
    shell_complete=complete.names,
)
observed_name_option = click.option(
    "--name",
    callback=lower_case,
    help="Name of the running fabric.  [default: default, or the only one that runs]",
    shell_complete=complete.names,
)
spec_argument = click.argument("spec", shell_complete=complete.fabrics)
link_argument = click.argument("link", shell_complete=complete.links)
parts_argument = click.argument(
    "parts", nargs=-1, required=True, metavar="PART...", shell_complete=complete.parts
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
details_option = click.option(
    "--details", is_flag=True, help="Print all that is known, not only the answer."
)


def _show_all(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        context.meta[HELP_LINES] = None
        click.echo(context.get_help())
        context.exit()


help_all_option = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Explain all options, with more examples, and exit.",
)


def duration_option(default_s: float) -> Callable[[Command], Command]:
    """Return ``--duration`` of commands that observe a running fabric."""
    return click.option(
        "--duration",
        "duration_s",
        type=Number(min=0.01, max=86400, unit=SECONDS),
        default=default_s,
        show_default=True,
        help="Real time; Ctrl-C ends it earlier.",
    )


def grouped(
    name: str, kind: type[Any], *options: Callable[[Any], Any]
) -> Callable[[Command], Command]:
    """Return a decorator that adds ``options``; the command gets their values as one ``kind``.

    ``kind`` is a dataclass with a field for the parameter of each option, and ``name`` what the
    command calls it.
    """

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(**given: Any) -> Any:
            values = {field.name: given.pop(field.name) for field in fields(kind)}
            return function(**{name: kind(**values)}, **given)

        return with_options(cast(Command, command), options)

    return decorate


def with_options(command: Command, options: Sequence[Callable[[Any], Any]]) -> Command:
    """Add options to a command, in their order."""
    for option in reversed(options):
        command = option(command)
    return command


def each_value(read: Callable[[str], Any]) -> Callable[..., tuple[Any, ...]]:
    """Return a callback that reads each value of an option that may be repeated."""

    def callback(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> tuple[Any, ...]:
        return tuple(map(read, texts))

    return callback


def name_words(name: str) -> list[str]:
    """Return the option that names a running fabric, for a command that is suggested next."""
    return [] if name == DEFAULT_NAME else ["--name", name]


def given_options(*names: str) -> list[str]:
    """Return the options of the current command that the user has given, as words.

    ``names`` are those of their parameters; for a command that is suggested next.
    """
    context = click.get_current_context()
    words: list[str] = []
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name not in names or source != ParameterSource.COMMANDLINE:
            continue
        value = context.params[option.name]
        if isinstance(value, bool):
            words += (option.opts if value else option.secondary_opts)[:1]
            continue
        if isinstance(value, Mapping):  # multicast groups
            value = [f"{key}={','.join(each)}" for key, each in value.items()]
        values = value if isinstance(value, list | tuple) else [value]
        words += [word for each in values for word in (option.opts[0], str(each))]
    return words


def fabric_of(spec: str) -> Fabric:
    """Return the fabric of SPEC; what its file has that is not read is said on standard error."""
    from knotless.topologies import load  # loads NumPy

    try:
        fabric = load(spec)
    except SpecError:
        from knotless.routing.engine import engines
        from knotless.topologies.registry import families

        if spec in families() or spec not in engines():
            raise
        raise SpecError(f"{spec!r} is an engine, no fabric: SPEC --engine {spec}") from None
    for note in fabric.notes:
        say(f"knotless: {fabric.name}: {note}", err=True)
    return fabric


def print_json(values: Mapping[str, object]) -> None:
    """Print ``values`` as one JSON object."""
    say_json(values, indent=1)
