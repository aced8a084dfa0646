"""Shared by tests: models, generators, running fabrics, files of other fabrics."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
