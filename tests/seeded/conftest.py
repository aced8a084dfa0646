"""Settings of the tests of simulated controllers."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _green_threads_end() -> None:
    """Do nothing: a world ends its own threads."""
