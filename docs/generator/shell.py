"""Runs the commands on pages, so that a page shows what they really print.

A block that begins with ```` ```sh run ```` is replaced by its commands and their output. The build
fails if a command does not have the exit status that the block expects: 0, or that of
```` ```sh run exit=1 ````. Blocks of a page share an empty folder; ``file=NAME`` in the first line
of any block writes the block to a file there. With ``hide`` the output is not shown.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from knotless.base.errors import KnotlessError
from knotless.cli.main import main

BLOCK = re.compile(r"^```(\w+)((?: \w+(?:=\S+)?)+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COLUMNS = "96"
MAX_COLUMNS = 100
MAX_LINES = 60
TIMEOUT_S = 60


class PageError(KnotlessError):
    """A command on a page does not do what the page says."""


@dataclass(frozen=True)
class Done:
    """The output of a command, and its exit status."""

    output: str
    status: int


class Shell:
    """Runs commands in a folder; ``knotless`` in this process, which is much faster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, line: str) -> Done:
        """Run a command line; raises PageError if it takes too long."""
        words = shlex.split(line, comments=True)
        if words[:1] == ["knotless"] and not set("|&;<>*") & set(line):
            with chdir(self.folder):
                runner = CliRunner(env={"COLUMNS": COLUMNS})
                done = runner.invoke(main, words[1:], prog_name="knotless")
            if done.exception is not None and not isinstance(done.exception, SystemExit):
                raise PageError(f"{line}: {done.exception!r}") from done.exception
            return Done(done.output, done.exit_code)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        try:
            ended = subprocess.run(
                ["bash", "-c", line],
                cwd=self.folder,
                env={**os.environ, "PATH": path, "COLUMNS": COLUMNS},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise PageError(f"{line}: takes longer than {TIMEOUT_S} s") from None
        return Done(ended.stdout, ended.returncode)


def executed(text: str, folder: Path, page: str) -> str:
    """Return a page with its blocks run and their output added.

    Raises
    ------
    PageError
        A command has an exit status that the page does not expect.

    """
    shell = Shell(folder)

    def replaced(match: re.Match[str]) -> str:
        language, given, body = match.groups()
        options = dict(word.partition("=")[::2] for word in given.split())
        if "file" in options:
            path = folder / options["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body)
            return f'```{language} title="{options["file"]}"\n{body}```'
        if "run" not in options:
            return match[0]
        shown, expected = [], int(options.get("exit", 0))
        for line in body.replace("\\\n", " ").splitlines():
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            done = shell.run(line)
            if done.status != expected:
                raise PageError(
                    f"{page}: {line!r} has exit status {done.status}, not {expected}:"
                    f" {done.output[-500:]}"
                )
            shown.append(done.output)
        output = "".join(shown).rstrip()
        if "hide" in options or not output:
            return f"```{language}\n{body}```"
        return f"```{language}\n{body}```\n\n```{{.text .output}}\n{shortened(output)}\n```"

    return BLOCK.sub(replaced, text)


def shortened(output: str) -> str:
    """Return at most MAX_LINES lines, broken between words as a terminal would break them."""
    lines = [part for line in output.splitlines() for part in _broken(line.rstrip())]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"... and {len(lines) - MAX_LINES} more lines"]
    return "\n".join(lines)


def _broken(line: str) -> list[str]:
    """Return a line in parts that fit; tables are left as they are."""
    if len(line) <= MAX_COLUMNS or "  " in line.strip():
        return [line]
    return textwrap.wrap(line, MAX_COLUMNS, subsequent_indent="  ", break_long_words=False)
