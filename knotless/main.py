"""The ``knotless`` command: one module of :mod:`knotless.commands` for each subcommand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from common.errors import KnotlessError
from common.plugins import module_names


class Commands(click.Group):
    """Imports a subcommand only when it is named, so that each needs only its own libraries."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands."""
        del ctx
        return module_names("knotless.commands")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the subcommand ``cmd_name``, or None when there is none."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = import_module(f"knotless.commands.{cmd_name}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"knotless.commands.{cmd_name}.command is no click command")
        return command

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and end with exit 2 and one line on a user's mistake, 130 on Ctrl-C."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        try:
            result = super().main(args, prog_name or "knotless", complete_var, False, **extra)
        except KnotlessError as error:
            _say(str(error))
            sys.exit(2)
        except click.ClickException as error:
            _say(_one_line(error))
            sys.exit(2)
        except (click.Abort, KeyboardInterrupt):
            _say("interrupted")
            sys.exit(130)
        except BrokenPipeError:
            sys.stderr.close()
            sys.exit(1)
        sys.exit(result if isinstance(result, int) else 0)


def _one_line(error: click.ClickException) -> str:
    """Return click's complaint with a hint where to read on."""
    text = error.format_message().replace("\n", " ")
    context = getattr(error, "ctx", None)
    return f"{text} (see {context.command_path} --help)" if context is not None else text


def _say(text: str) -> None:
    line = " ".join(text.split("\n"))
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    click.echo(f"knotless: {shown}", err=True)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="knotless")
def main() -> None:
    """Design, prove, run and measure lossless Ethernet fabrics that cannot deadlock.

    Example: knotless check --help
    """


if __name__ == "__main__":
    main()
