"""The notebooks as pages, with their outputs: they run when the site is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
LIMIT_S = 600.0
"""What a cell may take."""
HEAD = """*This page is the notebook [{name}]({name}), with its outputs. To run it:*

```sh
.venv/bin/pip install '.[notebooks]' && .venv/bin/jupyter notebook docs/notebooks/{name}
```
"""


def notebooks() -> list[Path]:
    """Return the notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path, limit_s: float = LIMIT_S) -> Any:
    """Return a notebook with its outputs; a cell that fails, or takes too long, raises."""
    notebook = nbformat.reads(path.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(
        notebook,
        timeout=limit_s,
        # The kernel sends what is printed when a timer expires, at times in the middle of a line.
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    return notebook


def page(path: Path) -> str:
    """Return a notebook as Markdown: text, code, and the outputs of code."""
    cells = executed(path)["cells"]
    title, rest = cells[0], cells[1:]
    parts = ["".join(title["source"]) + "\n", HEAD.format(name=path.name)]
    for cell in rest:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(f"{source}\n")
            continue
        parts.append(f"```python\n{source}\n```\n")
        parts += [shown for output in cell["outputs"] for shown in _output(output)]
    return "\n".join(parts)


def _output(output: Mapping[str, Any]) -> Iterator[str]:
    """Yield one output: as HTML or SVG if there is, else as text."""
    data: Mapping[str, Any] = output.get("data", {})
    for kind in ("image/svg+xml", "text/html"):
        if kind in data:
            inner = "".join(data[kind]).replace("\n\n", "\n")
            yield f'<div class="output">{inner}</div>\n'
            return
    text = "".join(data.get("text/plain", output.get("text", "")))
    if text.strip():
        yield f"```{{.text .output}}\n{text.rstrip()}\n```\n"


WRITERS: Mapping[str, Callable[[], str]] = {
    f"notebooks/{path.stem}.md": partial(page, path) for path in notebooks()
}
