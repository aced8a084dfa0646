"""The ``knotless`` command; each subcommand is a module that is imported when it is used."""

from __future__ import annotations

import errno
import io
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from knotless.base.errors import KnotlessError
from knotless.base.extras import how_to_install
from knotless.base.files import reason
from knotless.base.printable import brief, protect_logs, shortened
from knotless.cli.groups import EXPERIMENTS, GROUPS, SuggestingGroup, commands, module_of
from knotless.cli.output import say


class Commands(SuggestingGroup):
    """Imports a subcommand when it is used, so that each loads only the libraries it needs."""

    imported: Callable[[], None] = staticmethod(lambda: None)
    """Called when a subcommand has been imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands."""
        del ctx
        return commands()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, without loading them."""
        del ctx
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([*group.items()], col_max=13)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the subcommand ``cmd_name``, or None if there is none."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = module_of(cmd_name)
        command = import_module(module).command
        self.imported()
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            # From here on there may be something to be tidied up.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}.command is no click command")
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the commands, without loading them, and the options."""
        items = [
            CompletionItem(name, help=sentence)
            for group in GROUPS.values()
            for name, sentence in group.items()
            if name.startswith(incomplete)
        ]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; exit with 2 and one line for a mistake of the user, 130 for Ctrl-C.

        What the operating system refuses (a full disk, too few open files, too little memory) also
        gives one line.
        """
        protect_logs()
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # Names of files need not be text that the terminal can show.
                stream.reconfigure(errors="backslashreplace")
        try:
            try:
                result = super().main(args, prog_name or "knotless", complete_var, False, **extra)
            except SystemExit as end:
                result = end.code
            sys.stdout.flush()
        except (click.Abort, KeyboardInterrupt):
            _end(130, "interrupted")
        except Exception as error:  # noqa: BLE001 - raised again unless it is known
            if _follows_an_interrupt(error):
                _end(130, "interrupted")
            _end_by(error, self, sys.argv[1:] if args is None else args)
        sys.exit(result if isinstance(result, int) else 0)


def _follows_an_interrupt(error: BaseException | None) -> bool:
    """Tell whether an error was raised while Ctrl-C was handled, such as by closing workers."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _end_by(error: Exception, program: click.Command, words: Sequence[str]) -> NoReturn:
    """Exit because of a mistake of the user or of what the system refuses; raise other errors."""
    if isinstance(error, KnotlessError):
        _end(2, str(error))
    if isinstance(error, click.ClickException):
        from knotless.cli.mistakes import one_line  # only mistakes need it

        _end(2, one_line(error, program, words))
    if isinstance(error, BrokenPipeError):
        _end(1)
    if isinstance(error, ModuleNotFoundError) and error.name == EXPERIMENTS:
        _end(2, f"{EXPERIMENTS} is not installed: it comes with Knotless, in experiments/")
    if isinstance(error, ModuleNotFoundError) and (line := how_to_install(error)):
        _end(2, line)
    if isinstance(error, MemoryError):
        _end(2, f"not enough memory: {error}".removesuffix(": "))
    if isinstance(error, OSError):
        _end(2, _of_the_system(error))
    raise error


def _end(status: int, message: str | None = None) -> NoReturn:
    """Say why, and exit."""
    if message is not None:
        _say(message)
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        # Python would try to write the rest at its own end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(status)


def _of_the_system(error: OSError) -> str:
    """Return what the operating system complains about, and about which file."""
    where = "" if error.filename is None else f"{shortened(os.fsdecode(error.filename))}: "
    limit = ""
    if error.errno == errno.EMFILE:
        limit = f" (ulimit -n is {resource.getrlimit(resource.RLIMIT_NOFILE)[0]})"
    return f"{where}{reason(error)}{limit}"


def _say(text: str) -> None:
    line = " ".join(text.split("\n"))
    say(f"knotless: {brief(line)}", err=True)


def _version(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked:
        from knotless.base.package import commit, version

        built_from = commit()
        click.echo(f"knotless {version()}" + (f" (commit {built_from})" if built_from else ""))
        context.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and the commit, and exit.",
)
def main() -> None:
    """Design, prove, run and measure lossless Ethernet fabrics that cannot deadlock.

    knotless help says where to begin; knotless COMMAND --help explains a command.
    """
