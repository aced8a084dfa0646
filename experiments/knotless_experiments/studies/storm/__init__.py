"""The storm experiment: how far a pause storm reaches, and what ends it.

One host pauses its link for ever. How many channels and how many flows of other hosts stand still
behind it, with and without watchdogs in switches, and with a limit of hosts' pauses?

References
----------
Guo et al.: RDMA over commodity Ethernet at scale, SIGCOMM 2016, section 4.3, which met such storms
in a data centre and describes watchdogs against them.

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from knotless.base.quantities import SHARE
from knotless.cli.numbers import Number
from knotless_experiments.framework.campaign import Campaign
from knotless_experiments.framework.experiment import (
    SIMULATION,
    Common,
    Experiment,
)
from knotless_experiments.framework.options import (
    delay_of,
    delay_option,
    duration_of,
    given,
    list_option,
)
from knotless_experiments.framework.routed import Measured
from knotless_experiments.studies.storm.columns import COLUMNS

if TYPE_CHECKING:
    from knotless_experiments.studies.storm.cases import Case

DEFAULT_DURATION_S, QUICK_DURATION_S = 1.0, 0.1
DURATION_LIMITS_S = (0.01, 60.0)
DEFAULT_DELAY_US = 1.0
DEFAULT_LOAD, LOAD_LIMITS = 0.3, (0.01, 0.95)


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises KnotlessError if they are invalid."""
    from knotless_experiments.studies.storm import measure
    from knotless_experiments.studies.storm.cases import cases

    default_s = QUICK_DURATION_S if common.quick else DEFAULT_DURATION_S
    duration_s = duration_of(common, default_s, DURATION_LIMITS_S)
    load = given(options.get("load"), DEFAULT_LOAD, LOAD_LIMITS, "--load", "of a line")
    delay_us = delay_of(common, options, DEFAULT_DELAY_US)
    runs = cases(common, options, delay_us)

    def virtual(case: Case, seed: int) -> Measured:
        return measure.simulated(case, duration_s=duration_s, load=load, seed=seed)

    parameters = {
        "on": common.on,
        "duration_s": duration_s,
        "load": load,
        "delay_us": delay_us,
        "begins_s": measure.BEGINS_S,
        "cases": [[c.routed.spec, c.traffic, str(c.protection)] for c in runs if c.repeat == 1],
        "repeats": common.repeats,
    }
    return Campaign(common.on, runs, parameters, common.seed, virtual=virtual)


EXPERIMENT = Experiment(
    name="storm",
    summary="A host pauses its link for ever: what stands still, and what ends it.",
    example="knotless run storm --fabric torus,4,4 --protection none,drop:100,limit:500",
    options=(
        click.Option(
            ["--fabric"], multiple=True, metavar="SPEC", help="A fabric; may be repeated."
        ),
        list_option("--traffic", "all-to-all, permutation, or both."),
        list_option(
            "--protection",
            "none; drop:MS, drop-egress:MS or forward:MS, a watchdog with this detection time;"
            " limit:MS, hosts may pause 60 % of the time and this long at once.",
        ),
        click.Option(
            ["--load"],
            type=Number(unit=SHARE),
            help=f"Share of its line that each host sends (default: {DEFAULT_LOAD:g}).",
        ),
        delay_option(DEFAULT_DELAY_US),
    ),
    columns=COLUMNS,
    prepare=prepare,
    places=(SIMULATION,),
)
