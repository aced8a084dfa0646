"""A grid of eight short simulations, and how tests run ``knotless sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from click.testing import CliRunner

from knotless.cli.main import main

SMALL = """
grid:
  fabric: "ring,4,rate=1000,delay=1"
  engine: [updown, dor]
  pattern: uniform
  load: [0.2, 0.4]
  seed: [1, 2]
  duration_us: 2000
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "grid.yaml"
    path.write_text(text)
    return path


def invoke(*words: str | Path) -> Any:
    return CliRunner(mix_stderr=False).invoke(main, ["sweep", *map(str, words)])
