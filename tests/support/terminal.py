"""Programs on a pseudo-terminal, and ``knotless lab`` there, as a student uses it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import LIMIT_S, Limit

PROMPT = "mininet> "


class Terminal:
    """A program whose terminal this is, started in ``directory``."""

    def __init__(self, *words: str, directory: Path | None = None) -> None:
        self._terminal, program_side = pty.openpty()
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *words],
            stdin=program_side,
            stdout=program_side,
            stderr=program_side,
            cwd=directory,
            env={**os.environ, "TERM": "dumb"},
        )
        os.close(program_side)
        self.seen = ""

    def expect(self, text: str, limit_s: float = LIMIT_S) -> str:
        """Wait for ``text``; return what came before it."""
        limit = Limit(limit_s)
        while text not in self.seen:
            limit.check(f"{text!r} in {self.seen!r}")
            if select.select([self._terminal], [], [], 0.1)[0]:
                try:
                    piece = os.read(self._terminal, 4096)
                except OSError:
                    piece = b""
                assert piece, f"it ended without {text!r}: {self.seen!r}"
                self.seen += piece.decode(errors="replace")
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait(self, limit_s: float = LIMIT_S) -> int:
        """Read until it ends, and return its exit status."""
        limit = Limit(limit_s)
        while self.process.poll() is None:
            limit.check(f"the end after {self.seen!r}")
            if select.select([self._terminal], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self._terminal, 4096).decode(errors="replace")
                except OSError:
                    continue
        return self.process.returncode

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)


class Lab(Terminal):
    """``knotless lab`` at a terminal."""

    def __init__(self, *words: str, directory: Path | None = None) -> None:
        command = str(Path(sys.executable).with_name("knotless"))
        super().__init__(command, "lab", *words, directory=directory)

    def say(self, line: str) -> str:
        """Type a line at the prompt, and return what is shown until the next prompt."""
        self.type(f"{line}\n")
        return self.expect(PROMPT).replace("\r", "")

    def say_until(self, line: str, text: str, limit_s: float = LIMIT_S) -> str:
        """Repeat a line until its answer contains ``text``; return that answer."""
        limit = Limit(limit_s)
        while text not in (answer := self.say(line)):
            limit.check(f"{text!r} in {answer!r}")
        return answer
