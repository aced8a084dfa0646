"""``--switch`` of experiments: settings of the switches of every case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from knotless.base import switch_settings
from knotless.base.errors import SimulationError
from knotless.base.flow_control import FlowControl
from knotless.base.switch_settings import SwitchFile
from knotless_experiments.framework.experiment import ExperimentError
from knotless_experiments.framework.routed import Routed


def switch_option() -> click.Option:
    """Return the option for a file of switch settings."""
    return click.Option(
        ["--switch"],
        metavar="F.yaml",
        help="Shared buffers, lossless priorities, schedulers, ECN and watchdogs of switches.",
    )


def settings_of(options: Mapping[str, Any]) -> SwitchFile | None:
    """Return the settings in the file of ``--switch``; raises SwitchSettingsError."""
    path = options.get("switch")
    return None if path is None else switch_settings.read(Path(path))


def parameters_of(settings: SwitchFile | None) -> dict[str, Any]:
    """Return the settings as parameters of a run; a run without settings has none."""
    if settings is None:
        return {}
    return {"switch_settings": settings.model_dump(mode="json", exclude_defaults=True)}


def with_switches(routed: Routed, settings: SwitchFile, flow_control: FlowControl) -> Routed:
    """Return the same fabric and routes with switches that have these settings.

    Priorities can differ only under PFC, so the fabric starts with the flow control of its case.
    """
    text = settings.model_dump_json(exclude_defaults=True)
    return replace(routed, request=routed.request.but(flow_control=flow_control), switch=text)


def check(cases: Iterable[tuple[Routed, FlowControl]]) -> None:
    """Raise ExperimentError for settings that a fabric cannot have."""
    from knotless.simulation import Load, Scenario
    from knotless.simulation.run import prepare

    for routed, flow_control in dict.fromkeys(cases):
        settings = routed.switch_settings
        if settings is None:
            continue
        try:
            prepare(
                Scenario(
                    routed.plan,
                    "shift:1",
                    Load("saturate"),
                    flow_control=flow_control,
                    duration_us=1.0,
                    switch_settings=settings,
                )
            )
        except SimulationError as error:
            raise ExperimentError(
                f"--switch: {routed.name}, flow control {flow_control}: {error}"
            ) from None
