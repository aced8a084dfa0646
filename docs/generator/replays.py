"""The recordings in ``docs/replays/``, each as a page that plays it without a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from knotless.results import recording
from knotless.web.page_file import page_file

FOLDER = Path(__file__).resolve().parents[1] / "replays"


def page(path: Path) -> str:
    """Return a recording as an HTML file."""
    return page_file(recording.read(path))


WRITERS: Mapping[str, Callable[[], str]] = {
    f"replays/{path.name.removesuffix(recording.SUFFIX)}.html": partial(page, path)
    for path in sorted(FOLDER.glob(f"*{recording.SUFFIX}"))
}
"""The pages, each with the function that returns its text."""
