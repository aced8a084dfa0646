"""Kinds of files from which fabrics are imported, recognised by their content.

A module of a folder of :mod:`knotless.importers` defines at most one :class:`FileKind`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from knotless.base.errors import RuleError

_JSON = re.compile(r'\s*[{\[]\s*["{}\[\]]')

_START = re.compile(r"[ \t\r\n]*(?=[^ \t\r\n])")
HEAD = 20_000
"""Characters of a file by which most kinds are recognised."""
_MAX_VALUES = 100_000
"""JSON values that are read of one file."""


@dataclass(frozen=True)
class Content:
    """The text of a file, and the last part of its path."""

    text: str
    name: str = ""

    @property
    def head(self) -> str:
        """The first characters."""
        return self.text[:HEAD]

    @cached_property
    def json(self) -> Any:
        """The JSON value; None if the text does not look like JSON, or has several values.

        Raises
        ------
        RuleError
            It looks like JSON but is not, for example because it is cut off.

        """
        return self.json_values[0] if len(self.json_values) == 1 else None

    @cached_property
    def json_values(self) -> list[Any]:
        """The JSON values one after the other, as in JSON Lines; see :attr:`json`."""
        if not _JSON.match(self.text):
            return []
        values: list[Any] = []
        place = 0
        try:
            while len(values) < _MAX_VALUES and (start := _START.match(self.text, place)):
                value, place = _DECODER.raw_decode(self.text, start.end())
                values.append(value)
        except RecursionError:
            raise RuleError("not JSON: nested too deeply") from None
        except ValueError as error:
            raise RuleError(f"not JSON: {error}") from None
        return values


def _no_constant(text: str) -> NoReturn:
    raise RuleError(f"not JSON: {text} is not a number")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def json_mark(opening: str, key: str | None = None) -> re.Pattern[str]:
    """Return the mark of JSON that begins with a bracket and has a key near its beginning."""
    has_key = "" if key is None else f'.*?"{re.escape(key)}"'
    return re.compile(rf"\A\s*{re.escape(opening)}{has_key}", re.DOTALL)


@dataclass(frozen=True)
class FileKind:
    """A kind of file, of which each matches ``mark`` in its first characters.

    ``fits`` tells which of the files with this mark are of this kind (None: all). ``read`` raises
    RuleError or FabricError and names the line if it can.

    Files of one ``technology`` (``infiniband``, ``openflow`` or ``routers``) describe a fabric
    together, with those of technology ``cables``.
    """

    name: str
    technology: str
    mark: re.Pattern[str]
    read: Callable[[Content], object]
    fits: Callable[[Content], bool] | None = None
    marked_within: int = HEAD

    def recognises(self, content: Content) -> bool:
        """Tell whether a file is of this kind."""
        marked = self.mark.search(content.text, 0, self.marked_within) is not None
        return marked and (self.fits is None or self.fits(content))


@dataclass(frozen=True)
class FoundFile:
    """A file of a known kind, with what its reader returned.

    ``device`` is the folder whose files are those of one device. ``replaced_by`` is the file that
    counts instead if it exists. ``within`` are the keys under which a part of it has ``value``.
    """

    path: Path
    kind: FileKind
    value: Any
    device: Path
    replaced_by: Path | None = None
    within: tuple[str, ...] = ()


@cache
def file_kinds() -> Mapping[str, FileKind]:
    """Return all kinds by name, in alphabetical order, of all folders of this package.

    Only the modules that define one are loaded: those that say so.
    """
    here = Path(__file__).parent
    kinds: dict[str, FileKind] = {}
    for file in sorted(here.glob("*/*.py")):
        if b"= FileKind(" in file.read_bytes():
            module = import_module(f"{__package__}.{file.parent.name}.{file.stem}")
            kinds |= {
                kind.name: kind for kind in vars(module).values() if isinstance(kind, FileKind)
            }
    return dict(sorted(kinds.items()))


def kind_of(content: Content) -> FileKind | None:
    """Return the kind of a file, or None if no reader recognises it."""
    return next((kind for kind in file_kinds().values() if kind.recognises(content)), None)
