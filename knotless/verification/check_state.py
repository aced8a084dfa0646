"""The state of a check: what it read and what it found, kept in a file for the next one.

A state is used only by the program that wrote it, for the same options. Whoever can write the file
can write the verdict in it, unless it has a key. What does not fit is an error, and nothing in it
is executed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from knotless.base.errors import StateError
from knotless.base.flow_control import FlowControl
from knotless.base.package import PACKAGE
from knotless.base.sections import Sections, digest, write_sections
from knotless.importers.causes import Cause
from knotless.importers.manifest import FileRecord
from knotless.verification.imported_verdict import ImportedVerdict, SentWitness

_COMPUTES = ("base", "topologies", "routing", "forwarding", "importers", "verification")
"""The folders of the package whose code decides what a check finds."""
_LISTS = frozenset(
    {"cycle", "missing", "notes", "problems", "losses", "assumes", "ignored", "unread"}
)
_NUMBERS = frozenset({"switches", "hosts", "pairs", "undelivered"})


@dataclass(frozen=True)
class ShownFailureTable:
    """The failures that were tried, as they are shown.

    ``acyclic`` is whether none of them closes a cycle, None: unknown; ``survives`` whether that
    holds for all failures. ``values`` is what JSON has, ``lines`` what people see.
    """

    acyclic: bool | None
    survives: bool
    values: dict[str, Any]
    lines: tuple[str, ...]

    @classmethod
    def from_json(cls, value: object) -> ShownFailureTable:
        """Return it from plain values; raises StateError."""
        match value:
            case {
                "acyclic": None | bool() as acyclic,
                "survives": bool(survives),
                "values": dict(values),
                "lines": list(lines),
            } if all(isinstance(line, str) for line in lines):
                return cls(acyclic, survives, values, tuple(lines))
        raise _unfit()


@dataclass(frozen=True)
class CheckState:
    """The result of a check: the verdict, and records of the files that it read."""

    verdict: ImportedVerdict
    failure_table: ShownFailureTable | None
    files: list[FileRecord]
    sections: Sections

    @classmethod
    def read(cls, path: str | Path, options: Mapping[str, Any], key: bytes = b"") -> Self:
        """Return the state in a file, which was written with this key.

        Raises
        ------
        StateError
            It cannot be read, is damaged, or is that of another program, key or other ``options``.

        """
        sections = Sections(path, key)
        about = sections.json("about")
        if about.get("program") != program():
            raise StateError(f"{path}: written by another version of Knotless")
        former = about.get("options")
        if former != options:
            differing = [
                name
                for name in options
                if not isinstance(former, dict) or former.get(name) != options[name]
            ]
            raise StateError(f"{path}: the state of other {' and '.join(differing) or 'options'}")
        result = sections.json("found")
        table = result.get("certificate")
        files = sections.json("files").get("files")
        if not isinstance(files, list):
            raise _unfit()
        return cls(
            _verdict(result.get("verdict")),
            None if table is None else ShownFailureTable.from_json(table),
            [FileRecord.from_json(value) for value in files],
            sections,
        )


def write_state(
    path: str | Path,
    options: Mapping[str, Any],
    verdict: ImportedVerdict,
    table: ShownFailureTable | None,
    files: tuple[Sequence[FileRecord], Sequence[bytes]],
    more: Mapping[str, bytes],
    key: bytes = b"",
) -> None:
    """Write the state of a check; raises StateError if the file cannot be written.

    ``files`` are the records of :func:`knotless.importers.manifest.records_of` and the contents,
    ``more`` the sections that checks of changes need. With a ``key``, only who has it can write a
    state that fits.
    """
    records, contents = files
    result = {
        "verdict": asdict(verdict),
        "certificate": None if table is None else asdict(table),
    }
    sections = {
        "about": _text({"program": program(), "options": options}),
        "found": _text(result),
        "files": _text({"files": [record.as_json() for record in records]}),
        **more,
        "contents": b"".join(contents),
    }
    write_sections(path, sections, key)


def _text(value: object) -> bytes:
    return json.dumps(value).encode()


def options_of(
    paths: Sequence[str],
    hosts: Sequence[str],
    routes_by: str | None,
    failures: Sequence[object],
) -> dict[str, Any]:
    """Return what besides the files decides what a check finds, as plain values.

    Where the files are is part of it: devices are called after their folders.
    """
    places = [str(Path(path).resolve()) for path in paths]
    return {
        "paths": [*paths],
        "folders": places,
        "--hosts": [*hosts],
        "--routes": routes_by,
        "failures": [*failures],
    }


def program() -> str:
    """Return a hash of all code that decides what a check finds."""
    hashes = [digest((PACKAGE / "_core.abi3.so").read_bytes())]
    for folder in _COMPUTES:
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            hashes += [str(file.relative_to(PACKAGE)).encode(), digest(file.read_bytes())]
    return digest(b"\0".join(hashes)).hex()


def _unfit() -> StateError:
    return StateError("a state whose values do not fit")


def _verdict(value: object) -> ImportedVerdict:
    """Return a verdict from plain values."""
    if not isinstance(value, dict) or set(value) != {f.name for f in fields(ImportedVerdict)}:
        raise _unfit()
    fits = (
        all(_is_list_of_text(value[name]) for name in _LISTS)
        and all(type(value[name]) is int for name in _NUMBERS)
        and isinstance(value["fabric"], str)
        and type(value["max_channel_load"]) in (int, float)
        and isinstance(value["assumed_routes"], bool)
        and (value["acyclic"] is None or isinstance(value["acyclic"], bool))
        and isinstance(value["vcs"], dict)
        and all(isinstance(safe, bool) for safe in value["vcs"].values())
        and value["flow_control"] in {control.value for control in FlowControl}
        and isinstance(value["not_read"], list)
        and all(
            isinstance(file, dict)
            and set(file) == {"file", "reason", "command"}
            and all(isinstance(text, str) for text in file.values())
            for file in value["not_read"]
        )
        and isinstance(value["witnesses"], list)
        and isinstance(value["causes"], dict)
        and all(isinstance(causes, list) for causes in value["causes"].values())
    )
    if not fits:
        raise _unfit()
    return ImportedVerdict(
        **{
            **value,
            "flow_control": FlowControl(value["flow_control"]),
            "witnesses": tuple(map(_witness, value["witnesses"])),
            "causes": {text: [*map(_cause, some)] for text, some in value["causes"].items()},
        }
    )


def _is_list_of_text(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _cause(value: Any) -> Cause:
    match value:
        case [list(files), list(ways), None | int() as line] if files and all(
            map(_is_list_of_text, [files, *ways])
        ):
            return Cause(tuple(files), tuple(map(tuple, ways)), line)
    raise _unfit()


def _witness(value: object) -> SentWitness:
    names = [f.name for f in fields(SentWitness)]
    if not isinstance(value, dict) or set(value) != {*names}:
        raise _unfit()
    if not isinstance(value["value"], int):
        raise _unfit()
    if not all(isinstance(value[name], str) for name in names if name != "value"):
        raise _unfit()
    return SentWitness(**value)
