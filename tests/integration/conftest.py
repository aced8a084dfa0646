"""Fixtures of tests with fabrics: see tests/support/fabric_fixtures.py."""

from tests.support.fabric_fixtures import *  # noqa: F403 - fixtures and hooks
