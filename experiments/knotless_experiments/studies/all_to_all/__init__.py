"""All-to-all on Latin-square fat-trees and fat-trees: shift and contention-free schedules.

References
----------
Shimizu, Nakashima: all-to-all communication on Latin-square fat-trees, sections 4 and 5.

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from knotless.base.name_lists import choice
from knotless.cli.numbers import Whole
from knotless_experiments.framework.campaign import Campaign
from knotless_experiments.framework.experiment import (
    ANALYSIS,
    EMULATION,
    SIMULATION,
    Common,
    Experiment,
    ExperimentError,
)
from knotless_experiments.framework.options import (
    delay_of,
    delay_option,
    given,
    list_option,
    within,
)
from knotless_experiments.framework.routed import Measured
from knotless_experiments.studies.all_to_all.cases import SCHEDULES, SHARES
from knotless_experiments.studies.all_to_all.columns import COLUMNS

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric
    from knotless_experiments.studies.all_to_all.cases import Case

RATE_MBPS, DELAY_US = 5.0, 5000.0
DATAGRAMS, QUICK_DATAGRAMS = 64, 48
LIMITS_MBPS = (0.5, 1e6)
LIMITS_DATAGRAMS = (1, 100_000)
_SHARES = tuple(map(str, SHARES))


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises KnotlessError if they are invalid."""
    from knotless_experiments.studies.all_to_all import cases, measure

    if common.duration_s is not None:
        raise ExperimentError("--duration: give a number of --datagrams instead")
    rate_mbps = given(common.rate_mbps, RATE_MBPS, LIMITS_MBPS, "--rate", "Mbit/s")
    delay_us = delay_of(common, options, DELAY_US)
    default = QUICK_DATAGRAMS if common.quick else DATAGRAMS
    datagrams = default if options.get("datagrams") is None else options["datagrams"]
    within(datagrams, LIMITS_DATAGRAMS, "--datagrams", "for each host")
    runs = cases.cases(
        common.on,
        options.get("configuration"),
        choice(options.get("schedule"), SCHEDULES, "--schedule"),
        quick=common.quick,
        rate_mbps=rate_mbps,
        delay_us=delay_us,
        repeats=common.repeats,
        shares=[int(share) for share in choice(options.get("share"), _SHARES, "--share")],
    )

    def live(lab: EmulatedFabric, case: Case, seed: int) -> Measured:
        del seed
        return measure.emulated(lab, case, datagrams=datagrams)

    def virtual(case: Case, seed: int) -> Measured:
        if common.on == ANALYSIS:
            return measure.analysed(case)
        return measure.simulated(case, datagrams=datagrams, seed=seed)

    parameters = {
        "on": common.on,
        "cases": [[c.configuration.name, c.configuration.share, c.schedule] for c in runs],
        "datagrams": None if common.on == ANALYSIS else datagrams,
        "rate_mbps": rate_mbps,
        "delay_us": delay_us,
        "repeats": common.repeats,
    }
    return Campaign(common.on, runs, parameters, common.seed, live, virtual)


EXPERIMENT = Experiment(
    name="all-to-all",
    summary="All-to-all on Latin-square fat-trees: shift and contention-free schedules.",
    example="knotless run all-to-all --on analysis",
    options=(
        list_option("--configuration", "Some of S1 .. S3', L1 .. L6."),
        list_option("--schedule", f"Some of {', '.join(SCHEDULES)}."),
        list_option("--share", f"Hosts of L1 .. L6, per cent: some of {', '.join(_SHARES)}."),
        click.Option(
            ["--datagrams"], type=Whole(), metavar="N", help="From each host to each other."
        ),
        delay_option(DELAY_US),
    ),
    columns=COLUMNS,
    prepare=prepare,
    places=(EMULATION, SIMULATION, ANALYSIS),
)
