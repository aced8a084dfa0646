"""Fixtures of tests with fabrics: see tests/support/fabric_fixtures.py."""

from tests.support.fabric_fixtures import (
    knotless,
    lab,
    names,
    pytest_runtest_makereport,
    pytest_runtest_setup,
    remains,
    running,
    start,
)

__all__ = [
    "knotless",
    "lab",
    "names",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "remains",
    "running",
    "start",
]
