"""A lab, and the work of a student that its checker looks at.

To add a lab, add a folder ``labs/NN-name`` with its sheet, skeleton and solution, and a module to
``knotless.lab_checks.checkers`` that defines a :class:`Lab`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from knotless.base import yaml_file
from knotless.base.complaints import brief
from knotless.base.errors import KnotlessError
from knotless.base.package import data
from knotless.base.plugins import Plugins

FOLDER = data("labs")
ANSWERS = "answers.yaml"


class LabError(KnotlessError):
    """Work that cannot be read: no folder, or a file with an error in its form."""


class TodoError(KnotlessError):
    """Something that the student has still to do; the message says what."""


@dataclass(frozen=True)
class Work:
    """A student's folder, and the fabric that the student runs.

    ``fabric`` is the name of the running fabric; None: only the files are judged.
    """

    directory: Path
    fabric: str | None = None

    def path(self, name: str) -> Path:
        """Return the path of a file or folder; raises TodoError if it does not exist."""
        path = self.directory / name
        if not path.exists():
            stem = Path(name).stem.casefold()
            for other in sorted(entry.name for entry in self.directory.iterdir()):
                if Path(other).stem.casefold() == stem:
                    raise TodoError(f"{self.shown(other)}: must be called {name}: rename it")
            how = "make it as the sheet says, or copy the skeleton"
            raise TodoError(f"{self.shown(name)}: missing: {how}")
        return path

    def shown(self, name: str) -> str:
        """Return the path of a file as lines name it: from where the student gave the folder."""
        return str(self.directory / name)

    @cached_property
    def answers(self) -> Answers:
        """The student's answers; raises TodoError or LabError."""
        return Answers.read(self, ANSWERS)


@dataclass(frozen=True)
class Answers:
    """The values of a YAML file; every method raises TodoError for a value that is not there."""

    file: str
    values: Mapping[str, Any]

    @classmethod
    def read(cls, work: Work, name: str) -> Answers:
        """Read a file of the student's folder; raises TodoError, or LabError if it is no YAML."""
        values = yaml_file.read(work.path(name), LabError)
        if not isinstance(values, dict):
            raise LabError(f"{work.shown(name)}: must have keys with values, such as 'cycle: []'")
        return cls(work.shown(name), values)

    def wrong(self, key: str, text: str) -> str:
        """Return a line about the value of ``key``."""
        return f"{self.file}: {key}: {text}"

    def text(self, key: str) -> str:
        """Return a text."""
        value = self._given(key)
        if isinstance(value, list | dict):
            raise TodoError(self.wrong(key, f"must be one word, not {brief(value)}"))
        return str(value)

    def number(self, key: str) -> int:
        """Return a whole number."""
        value = self._given(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise TodoError(self.wrong(key, f"must be a whole number, not {brief(value)}"))
        return value

    def texts(self, key: str) -> list[str]:
        """Return a list of texts, not empty."""
        value = self._given(key)
        if not isinstance(value, list) or any(isinstance(one, list | dict) for one in value):
            raise TodoError(self.wrong(key, f"must be a list such as [a, b], not {brief(value)}"))
        return [str(one) for one in value]

    def mapping(self, key: str, example: str) -> dict[str, Any]:
        """Return a mapping from texts; ``example`` shows its form."""
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise TodoError(self.wrong(key, f"must be a mapping such as {example}"))
        return {str(name): entry for name, entry in value.items()}

    def list(self, key: str) -> list[Any]:
        """Return a list, not empty, whose entries the caller examines."""
        value = self._given(key)
        if not isinstance(value, list):
            raise TodoError(self.wrong(key, f"must be a list, not {brief(value)}"))
        return value

    def _given(self, key: str) -> Any:
        if self.is_empty(key):
            raise TodoError(self.wrong(key, _EMPTY))
        return self.values[key]

    def is_empty(self, key: str) -> bool:
        """Tell whether there is no value yet."""
        value = self.values.get(key)
        return value is None or value in ("", [], {})


Part = Callable[[Work], Iterable[str]]
_EMPTY = "still empty"
FORM = "answers"
"""The task that is to give every answer under its key."""


def each_of(*judgements: Iterable[str]) -> Iterator[str]:
    """Yield the lines of all judgements, also after one that lacks something."""
    for judgement in judgements:
        try:
            yield from judgement
        except TodoError as problem:
            yield str(problem)


@dataclass(frozen=True)
class Lab:
    """A lab: its ``parts`` are judged one after the other, each yields lines on what is wrong.

    ``live`` are the parts that need the student's running fabric.
    """

    number: int
    name: str
    parts: tuple[Part, ...]
    live: tuple[Part, ...] = ()

    @property
    def title(self) -> str:
        """The number and the name, as people read it."""
        return f"lab {self.number}, {self.name.replace('-', ' ')}"

    @property
    def folder(self) -> Path:
        """The folder with the sheet, the skeleton and the solution."""
        return FOLDER / f"{self.number:02}-{self.name}"

    def wrong_keys(self, work: Work) -> Iterator[str]:
        """Name the keys of the answers that the skeleton does not have, and those without value."""
        skeleton = self.folder / "skeleton" / ANSWERS
        if not skeleton.is_file() or not (work.directory / ANSWERS).is_file():
            return
        keys = list(map(str, Answers.read(Work(skeleton.parent), ANSWERS).values))
        for key in map(str, work.answers.values):
            if key not in keys:
                close = get_close_matches(key[:50], keys, n=1) or keys
                text = f"there is no such key; did you mean {' or '.join(close)}?"
                yield work.answers.wrong(key[:50], text)
        for key in keys:
            if work.answers.is_empty(key):
                yield work.answers.wrong(key, _EMPTY)

    def tasks(self, work: Work) -> dict[str, Part]:
        """Return what is judged, by the name of the task: the form of the answers comes first."""
        parts = self.parts + (self.live if work.fabric is not None else ())
        return {FORM: self.wrong_keys, **{_name(part): part for part in parts}}

    def problems(self, work: Work) -> list[str]:
        """Return what is still wrong, one line each; raises KnotlessError for unreadable work."""
        judgements = (part(work) for part in self.tasks(work).values())
        return list(dict.fromkeys(each_of(*judgements)))

    def results(self, work: Work) -> dict[str, list[str]]:
        """Return what is still wrong with each task; work that cannot be read is wrong."""
        lines: dict[str, list[str]] = {}
        for name, part in self.tasks(work).items():
            try:
                lines[name] = list(each_of(part(work)))
            except KnotlessError as problem:
                lines[name] = [str(problem)]
        return lines


def _name(part: Part) -> str:
    """Return the name of the task that a part judges."""
    return getattr(part, "__name__", "task").replace("_", " ")


def labs() -> dict[int, Lab]:
    """Return all labs by number."""
    return {
        lab.number: lab
        for lab in sorted(Plugins("knotless.lab_checks.checkers", Lab).values(), key=_number)
    }


def _number(lab: Lab) -> int:
    return lab.number
