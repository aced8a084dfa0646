"""The settings of all tests: see tests/conftest.py."""

import sys

PLUGIN = "tests.tiers.plugin"
if PLUGIN not in sys.modules:  # pytest takes plug-ins of conftest files that it reads at its start
    pytest_plugins = [PLUGIN]

from tests.conftest import _nothing_goes_on  # noqa: E402 - it says that they are there

__all__ = ["_nothing_goes_on"]
