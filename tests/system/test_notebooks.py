"""The notebooks run, and are stored without outputs: the site shows those of its build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.generator.notebooks import executed, notebooks
from tests.support.waiting import HANG_S


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_no_outputs_are_stored(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_every_cell_of_code_shows_something(path: Path) -> None:
    silent = [
        cell["source"]
        for cell in executed(path, HANG_S)["cells"]
        if cell["cell_type"] == "code" and not cell["outputs"]
    ]
    assert not silent
