"""The notebooks as pages, with the outputs that are stored in them; a test runs them again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
HEAD = """*This page is the notebook [{name}]({name}), with its outputs. To run it:*

```sh
.venv/bin/pip install '.[notebooks]' && .venv/bin/jupyter notebook docs/notebooks/{name}
```
"""


def notebooks() -> list[Path]:
    """Return the notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def page(path: Path) -> str:
    """Return a notebook as Markdown: text, code, and the outputs of code."""
    cells = json.loads(path.read_text())["cells"]
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
