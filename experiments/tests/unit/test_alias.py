"""The name that experiments had before they were a package of their own."""

from __future__ import annotations

from importlib import import_module

from knotless_experiments.framework import experiment
from knotless_experiments.studies.hops import EXPERIMENT


def test_modules_by_their_former_names_are_the_same() -> None:
    assert import_module("knotless.experiments.framework.experiment") is experiment
    assert import_module("knotless.experiments.studies.hops").EXPERIMENT is EXPERIMENT
