"""Count the files of the product that a command enters: what one must read to follow it.

    .venv/bin/python tools/walk.py plan torus,4,4
    .venv/bin/python tools/walk.py --files check tests/data/fabrics/control-knot

The command runs twice in one process; the second run is counted, as the first one also imports,
declares options and fills caches. A file is entered if a function of it is called.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import threading
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from knotless.base.package import PACKAGE
from knotless.cli.main import main


def run(words: list[str]) -> int:
    """Run a command without its output; return its exit status."""
    nowhere = io.StringIO()
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        try:
            main(words, prog_name="knotless")
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0
    return 0


def entered(words: list[str]) -> tuple[int, set[Path]]:
    """Return the exit status of a command, and the files that its second run enters."""
    files = set[str]()

    def called(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    run(words)
    threading.setprofile(called)
    sys.setprofile(called)
    try:
        status = run(words)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return status, {Path(file) for file in files if Path(file).is_relative_to(PACKAGE)}


def _main() -> int:
    parser = argparse.ArgumentParser(
        prog="tools/walk.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--files", action="store_true", help="list the files")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND ...")
    asked = parser.parse_args()
    if not asked.words:
        parser.error("which command? such as: plan torus,4,4")
    status, files = entered(asked.words)
    if asked.files:
        for file in sorted(files):
            sys.stdout.write(f"{file.relative_to(PACKAGE)}\n")
    sys.stdout.write(f"{len(files)} files (exit status {status})\n")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
