"""The causes of findings: which file says something, and in which line.

Readers keep no lines. A finding names its causes: files, and the keys that lead to a fact in them,
one inside the other. Of findings that are shown, these files are read again to find the lines, so
that a large fabric needs no memory for them.

References
----------
RFC 6901: JSON pointers.

"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from knotless.base.archives import opened
from knotless.base.errors import KnotlessError, RuleError
from knotless.base.files import read_bytes
from knotless.importers.listing import MAX_FILE_BYTES

Keys = tuple[str, ...]
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}\[\],])|[^\s{}\[\],:"]+', re.DOTALL)
_JSON = re.compile(r"\s*[{\[]")
_LINE = re.compile(r"\bline (\d{1,9})\b")
_BEFORE, _AFTER = r"(?<![0-9A-Za-z_.])", r"(?![0-9A-Za-z_/]|[.:-]\w)"


class Cause(NamedTuple):
    """The source of a fact: the files that may have it, and the keys that lead to it there.

    Of several ``ways`` the first that leads to the end counts. In text each key is in a line below
    that of the key before, in its section. ``line`` is given where a reader knows it.
    """

    files: tuple[str, ...]
    ways: tuple[Keys, ...] = ()
    line: int | None = None

    @classmethod
    def from_error(cls, file: str, text: str) -> Cause:
        """Return the source of an error of a reader, whose text may name the line."""
        line = _LINE.search(text)
        return cls((file,), line=int(line[1]) if line else None)


class Source(NamedTuple):
    """The files of a device.

    ``within`` are the keys under which a file of several devices has it. ``vrf`` is the only VRF
    that is meant, empty for the default one.
    """

    files: tuple[str, ...] = ()
    within: Keys = ()
    vrf: str = ""

    def cause(self, *keys: str) -> Cause:
        """Return the source of what these keys lead to: ``("PORT", "Ethernet0")``."""
        return Cause(self.files, ((*self.within, *keys),) if keys else ())

    def route(self, prefix: str) -> Cause:
        """Return the source of a route to a prefix, or of a bridge to a MAC (``MAC@VLAN``)."""
        prefix = prefix.partition("@")[0]
        vrf = (self.vrf,) if self.vrf else ()
        ways = [("ROUTE_TABLE", *vrf, prefix), (*(vrf or ("default",)), prefix)]
        if not vrf:
            ways.append((prefix,))
        return Cause(self.files, tuple((*self.within, *way) for way in ways))


class Place(NamedTuple):
    """A place in a file: its line and column, which count from 1, and in JSON its pointer.

    Without a line it is the whole file.
    """

    file: str
    line: int | None = None
    column: int | None = None
    pointer: str = ""

    def as_json(self) -> dict[str, str | int]:
        """Return the place as a value for :func:`json.dumps`, without what it lacks."""
        return {name: value for name, value in self._asdict().items() if value}

    @property
    def text(self) -> str:
        """The place as text; where all of a JSON file is one line, with the pointer."""
        if self.pointer and self.line == 1:
            return f"{self.file}#{self.pointer}"
        return self.file if self.line is None else f"{self.file}:{self.line}"


Causes = Mapping[str, Sequence[Cause]]
"""The causes of findings, by their texts."""
Read = Callable[[str], bytes | None]
"""Returns the content of a file; None if it cannot be read any more."""


@dataclass(frozen=True)
class Reached:
    """A place, and the number of keys of a way that lead to it."""

    keys: int
    place: Place


KnownPlaces = dict[str, dict[Keys, Reached | None]]
"""By file and way: how far it leads there, None: nowhere."""


def places_of(
    causes: Causes, read: Read, cache: KnownPlaces | None = None
) -> dict[str, list[Place]]:
    """Return the places of the causes of each finding, each place once.

    ``cache`` has places that were found before in the same files; more are added.
    """
    reached: KnownPlaces = {} if cache is None else cache
    ways: dict[str, dict[Keys, None]] = {}
    for cause in (cause for of_finding in causes.values() for cause in of_finding):
        for file in cause.files:
            of_file = reached.setdefault(file, {})
            more = dict.fromkeys(way for way in cause.ways if way not in of_file)
            if more:
                ways.setdefault(file, {}).update(more)
    for file, more in ways.items():
        reached[file].update({**more, **_reached(file, more, read)})
    return {
        text: list(dict.fromkeys(_place(cause, reached) for cause in of_finding if cause.files))
        for text, of_finding in causes.items()
    }


def _place(cause: Cause, reached: KnownPlaces) -> Place:
    """Return the place to which the most keys of a cause lead."""
    best = Reached(0, Place(cause.files[0], cause.line))
    for way in cause.ways:
        for file in cause.files:
            one = reached[file].get(way)
            if one is not None and one.keys == len(way):
                return one.place
            if one is not None and one.keys > best.keys:
                best = one
    return best.place


def _reached(file: str, ways: Iterable[Keys], read: Read) -> dict[Keys, Reached]:
    data = read(file)
    if data is None:
        return {}
    text = data.decode(errors="replace")
    of_form = _in_json if _JSON.match(text) else _in_text
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    places = {}
    for way, (keys, offset, pointer) in of_form(text, [*ways]).items():
        line = bisect_right(starts, offset)
        place = Place(file, line, offset - starts[line - 1] + 1, pointer)
        places[way] = Reached(keys, place)
    return places


_Offsets = dict[Keys, tuple[int, int, str]]
"""By way: how many keys lead to a place, its offset, and its pointer."""


def _in_text(text: str, ways: Sequence[Keys]) -> _Offsets:
    """Find each key in a line below that of the key before, up to the next line that begins alike.

    A section begins with a line such as ``Switch 36 "S-0002c9000100d050"`` or ``router bgp 65001``.
    """
    places: _Offsets = {}
    for way in ways:
        begin, end = 0, len(text)
        for number, key in enumerate(way, 1):
            pattern = re.compile(_BEFORE + re.escape(_plain(key)) + _AFTER, re.IGNORECASE)
            match = pattern.search(text, begin, end)
            if match is None:
                break
            start = text.rfind("\n", 0, match.start()) + 1
            first = text[start:].split(None, 1)[0] if number < len(way) else ""
            begin = match.end()
            if first:
                again = re.compile(rf"^\s*{re.escape(first)}\b", re.MULTILINE).search(text, begin)
                end = min(end, again.start() if again else end)
            places[way] = (number, start, "")
    return places


def _in_json(text: str, ways: Sequence[Keys]) -> _Offsets:
    """Find keys one inside the other; what lies between does not matter.

    One name may stand for several keys, as in the flat keys of databases: ``PORT|Ethernet0``.
    Names count as keys, and so do texts, since many programs write ``{"dst": "10.0.0.0/24"}``.
    """
    wanted: dict[str, list[tuple[int, int, int]]] = {}
    for number, way in enumerate(ways):
        plain = [*map(_plain, way)]
        for i in range(len(way)):
            for j in range(i + 1, len(way) + 1):
                wanted.setdefault(":".join(plain[i:j]), []).append((number, i, j))
    places: _Offsets = {}
    for path, called, offset, matched in _names(text):
        name = _plain(called)
        several = name.split(",") if "," in name else ()  # PORT_QOS_MAP lists ports in one key
        for number, i, j in (way for one in (name, *several) for way in wanted.get(one, ())):
            before = next((m[number] for m in reversed(matched[:-1]) if number in m), 0)
            if before == i:
                matched[-1][number] = j
                if j > places.get(ways[number], (0,))[0]:
                    pointer = "".join(f"/{_escaped(name)}" for name in path)
                    places[ways[number]] = (j, offset, pointer)
    return places


def _names(text: str) -> Iterator[tuple[list[str], str, int, list[dict[int, int]]]]:
    """Yield the path to each name, text and element of JSON, the name or text, and its offset.

    Marks of each level follow, for the caller, which go with the names that they are of.
    """
    path: list[str] = []
    marks: list[dict[int, int]] = []
    counts: list[int] = []  # by level: the number of the element in an array, -1: an object
    is_name = False
    for token in _TOKEN.finditer(text):
        sign = token[2]
        if sign in ("{", "["):
            if counts and counts[-1] >= 0:
                path[-1], marks[-1] = str(counts[-1]), {}
                yield path, path[-1], token.start(), marks
            counts.append(-1 if sign == "{" else 0)
            path.append("")
            marks.append({})
            is_name = sign == "{"
        elif sign in ("}", "]"):
            if counts:
                counts.pop()
                path.pop()
                marks.pop()
        elif sign == ",":
            if counts and counts[-1] >= 0:
                counts[-1] += 1
            is_name = bool(counts) and counts[-1] < 0
        elif token[1] is not None and counts:
            called = _unescaped(token[0])
            if is_name:
                path[-1], marks[-1], is_name = called, {}, False
                yield path, called, token.start(), marks
            else:
                if counts[-1] >= 0:
                    path[-1], marks[-1] = str(counts[-1]), {}
                yield path, called, token.start(), [*marks, {}]


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text[1:-1]
    try:
        return str(json.loads(text, strict=False))
    except ValueError:
        return text[1:-1]


def _plain(key: str) -> str:
    """Return a key as it is compared: databases divide keys by bars or colons.

    Old versions of FRR escape the slashes of prefixes.
    """
    plain = key.lower().replace("|", ":").replace("\\", "")
    for whole in ("/32", "/128"):
        plain = plain.removesuffix(whole)
    return plain


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def content(file: str) -> bytes | None:
    """Return the content of a file, of an archive too; None if it cannot be read any more."""
    path = Path(file)
    outer = next((one for one in (path, *path.parents) if one.is_file()), None)
    if outer is None:
        return None
    try:
        with opened(outer, RuleError) as archive:
            if archive is None:
                return read_bytes(outer, RuleError, MAX_FILE_BYTES)
            if not archive.is_tar:
                return archive.content(MAX_FILE_BYTES)
            inner = str(path.relative_to(outer))
            members = (one for one in archive.members() if str(Path(one.name)) == inner)
            return next((archive.data(one) for one in members), None)
    except KnotlessError:
        return None
