"""The contents of ``run.json``: read and checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from knotless.base.complaints import complaint
from knotless.base.errors import KnotlessError
from knotless.base.files import read_text
from knotless.results.validity import judge

NAME = "run.json"

Scalar = str | int | float | bool | None


class Document(BaseModel):
    """The keys of a run that every reader may rely on; experiments add parameters and rows."""

    model_config = ConfigDict(extra="allow")

    experiment: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,99}$")]
    id: Annotated[str, Field(pattern=r"^[\w.-]{1,200}$")]
    status: Literal["running", "complete", "incomplete"]
    reason: StrictStr | None
    pid: StrictInt | None
    started: StrictStr
    finished: StrictStr | None
    seed: StrictInt
    parameters: dict[str, Any]
    versions: dict[str, Scalar]
    machine: dict[str, Scalar]
    rows: list[dict[str, Any]]


def read(path: Path, error: type[KnotlessError]) -> dict[str, Any]:
    """Return the run in a file, its rows judged anew by :mod:`knotless.results.validity`.

    Raises ``error``, with the path, where the file holds no run.
    """
    try:
        held = json.loads(read_text(path, error), parse_constant=_no_number)
        Document.model_validate(held)
    except ValidationError as problem:
        raise error(f"{path}: not a run of an experiment: {complaint(problem)}") from problem
    except (ValueError, RecursionError) as problem:
        cause = "nested too deeply" if isinstance(problem, RecursionError) else problem
        raise error(f"{path}: not a run of an experiment: {cause}") from problem
    run: dict[str, Any] = held
    for row in run["rows"]:
        judge(row)
    return run


@contextmanager
def whose_rows_may_not_fit(where: str, error: type[KnotlessError]) -> Iterator[None]:
    """Raise ``error`` where code meets rows that lack a key or hold other values than it needs."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        cause = " ".join(f"{type(problem).__name__}: {problem}".split())
        raise error(f"{where}: has rows that this experiment does not write: {cause}") from problem


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
