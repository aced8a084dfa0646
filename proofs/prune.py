"""Remove from an extracted program what its entry points do not use.

    prune.py EXTRACTED.ml Extract.v >PRUNED.ml

Coq extracts whole modules of its library. OCaml's own warnings say which values, types and modules
are used by nothing, and each round removes these, until none is left; nothing else is changed. The
entry points are those that the command `Extraction` names.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

UNUSED = "-w -a+32+34+60"
"""Warnings of the compiler: an unused value, type, module."""
REPORT = re.compile(r'^File "[^"]*", lines? (\d+)', re.MULTILINE)


def entry_points(text: str) -> list[str]:
    """Return the names that `Extraction "FILE" NAME...` lists."""
    command = re.search(r'^Extraction "[^"]*"([^.]*)\.', text, re.MULTILINE)
    if not command:
        sys.exit("prune: no command Extraction")
    return command[1].split()


def unused_lines(lines: list[str], entries: list[str]) -> list[int]:
    """Return the lines, from 0, at which the compiler finds something that is not used."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.ml")
        program.write_text("\n".join([*lines, f"let _ = ({', '.join(entries)})", ""]))
        program.with_suffix(".mli").write_text("")
        flags = [*UNUSED.split(), "-error-style", "short", "-I", folder]
        for source in (program.with_suffix(".mli"), program):
            done = subprocess.run(
                ["ocamlc", "-c", *flags, source], capture_output=True, text=True, check=False
            )
            if done.returncode:
                sys.exit(f"prune: {done.stderr}")
    return sorted({int(number) - 1 for number in REPORT.findall(done.stderr)})


def indent(line: str) -> int:
    """Return the number of blanks that a line begins with."""
    return len(line) - len(line.lstrip())


OPENING = re.compile(r" *(struct|sig)")


def definition(lines: list[str], number: int) -> range:
    """Return the lines of the definition that begins in or above a line.

    Empty lines divide definitions, and only modules contain some.
    """
    first = start_of(lines, number)
    header = lines[first : lines.index("", first)]
    opening = next((line for line in header if OPENING.fullmatch(line)), None)
    if opening:
        end = lines.index(" " * indent(opening) + "end", first)
    else:
        end = number
        while lines[end + 1] and (lines[end + 1].strip() != "end"):
            end += 1
    return range(first, end + 1 if lines[end + 1] else end + 2)


def start_of(lines: list[str], number: int) -> int:
    """Return the first line of the paragraph of a line: behind an empty one, or an opening one."""
    while number and lines[number - 1] and not OPENING.fullmatch(lines[number - 1]):
        number -= 1
    return number


def without(lines: list[str], removed: range) -> list[str]:
    """Return lines without a definition; what was defined with it begins a definition then."""
    above, below = lines[: removed.start], lines[removed.stop :]
    if lines[removed.start].lstrip().startswith("let rec"):
        below[:1] = [re.sub(r"^( *)and ", r"\1let rec ", line) for line in below[:1]]
    return above + below


def pruned(lines: list[str], entries: list[str]) -> list[str]:
    """Return the lines of a program without definitions that nothing uses."""
    lines = [*lines, ""]
    while unused := unused_lines(lines, entries):
        ranges = [definition(lines, number) for number in reversed(unused)]
        for position, removed in enumerate(ranges):
            # The members of a module that is removed are removed with it.
            if not any(removed.start in other for other in ranges[position + 1 :]):
                lines = without(lines, removed)
    return lines


if __name__ == "__main__":
    extracted, commands = (Path(name).read_text() for name in sys.argv[1:])
    # Comments repeat the types.
    code = re.sub(r"^ *\(\*\*.*?\*\*\)\n\n", "", extracted, flags=re.DOTALL | re.MULTILINE)
    kept = pruned(code.splitlines(), entry_points(commands))
    sys.stdout.write("\n".join(kept).strip() + "\n")
