"""The notebooks run, and their outputs are those that are stored in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from docs.generator.notebooks import notebooks
from tests.support.waiting import HANG_S


def read(path: Path) -> Any:
    return nbformat.reads(path.read_text(), as_version=4)  # type: ignore[no-untyped-call]


def shown(notebook: Any) -> Iterator[tuple[str, str]]:
    """Yield the outputs of a notebook, by kind."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error"
            yield "stream", output.get("text", "")
            yield from sorted(output.get("data", {}).items())


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_outputs_are_those_of_the_code(path: Path) -> None:
    notebook = read(path)
    stored = list(shown(notebook))
    assert stored
    again = read(path)
    NotebookClient(
        again,
        timeout=HANG_S,
        # The kernel sends what is printed when a timer expires, at times in the middle of a line.
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    assert list(shown(again)) == stored
