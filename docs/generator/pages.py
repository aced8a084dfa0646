"""All generated files of the site, by their path below ``docs/``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from docs.generator import (
    commands,
    configuration,
    engines,
    families,
    gallery,
    notebooks,
    outputs,
    replays,
    rust,
    screens,
    stored_runs,
)

WRITERS: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": commands.page,
    "reference/configuration.md": configuration.page,
    "reference/fabric-specs.md": families.page,
    "reference/json.md": outputs.page,
    "reference/rust.md": rust.page,
    "reference/screens.md": screens.page,
    "explanation/engines.md": engines.page,
    "gallery.md": gallery.page,
    "runs/index.md": stored_runs.page,
    **notebooks.WRITERS,
    **replays.WRITERS,
}
"""The pages, each with the function that returns its text."""


DRAWINGS: Mapping[str, Callable[[], str]] = {
    **families.DRAWINGS,
    **engines.DRAWINGS,
    **gallery.DRAWINGS,
}
"""The drawings (SVG), each with the function that draws it."""


@cache
def texts() -> Mapping[str, str]:
    """Return the generated pages and drawings."""
    return {path: write() for path, write in {**WRITERS, **DRAWINGS}.items()}
