"""The clos-failure experiment: links of a fat-tree fail, and frames bounce.

Paths that go up and then down close no cycle. Where a switch lacks its link down to the
destination, it can send frames to another switch below it, which sends them up again: they bounce.
Bounces of several failures can close a cycle of channels, unless frames that have bounced change
to a priority of their own.

References
----------
Guo et al.: RDMA over commodity Ethernet at scale, SIGCOMM 2016, section 4.2: a deadlock in a Clos
network with up-down routes. Hu et al.: Tagger: practical PFC deadlock prevention in data center
networks, CoNEXT 2017: bounces after failures of links, and a lossless priority for each bounce.

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from knotless.cli.numbers import Whole
from knotless_experiments.framework.campaign import Campaign
from knotless_experiments.framework.experiment import SIMULATION, Common, Experiment
from knotless_experiments.framework.options import delay_of, delay_option, duration_of, list_option
from knotless_experiments.framework.routed import Measured
from knotless_experiments.studies.clos_failure.columns import COLUMNS

if TYPE_CHECKING:
    from knotless_experiments.studies.clos_failure.cases import Case

DEFAULT_DURATION_S, DURATION_LIMITS_S = 0.002, (1e-5, 10.0)
DEFAULT_DELAY_US = 1.0
DEFAULT_SEEDS, QUICK_SEEDS, MAX_SEEDS = 100, 20, 100_000


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises KnotlessError if they are invalid."""
    from knotless_experiments.studies.clos_failure import measure
    from knotless_experiments.studies.clos_failure.cases import cases

    duration_s = duration_of(common, DEFAULT_DURATION_S, DURATION_LIMITS_S)
    delay_us = delay_of(common, options, DEFAULT_DELAY_US)
    seeds = options.get("seeds") or (QUICK_SEEDS if common.quick else DEFAULT_SEEDS)
    runs = cases(common, options, delay_us)

    def virtual(case: Case, seed: int) -> Measured:
        return measure.simulated(case, duration_s=duration_s, seeds=seeds, seed=seed)

    parameters = {
        "on": common.on,
        "duration_s": duration_s,
        "delay_us": delay_us,
        "seeds": seeds,
        "cases": [[c.spec, c.without, c.routes, c.traffic] for c in runs if c.repeat == 1],
        "repeats": common.repeats,
    }
    return Campaign(common.on, runs, parameters, common.seed, virtual=virtual)


EXPERIMENT = Experiment(
    name="clos-failure",
    summary="Links of a fat-tree fail: repaired routes, frames that bounce, a priority for them.",
    example="knotless run clos-failure --seeds 1000",
    options=(
        click.Option(["--fabric"], metavar="SPEC", help="A fat-tree; needs --without."),
        click.Option(
            ["--without"],
            multiple=True,
            metavar="LINKS",
            help="Links that have failed, such as s9-s3,s10-s4; each repeat is a further case.",
        ),
        list_option("--routes", "repaired, bounced, tagged (default: all)."),
        list_option("--traffic", "permutation, 3-permutations, or both (default)."),
        click.Option(
            ["--seeds"],
            type=Whole(1, MAX_SEEDS),
            metavar="N",
            help=f"Runs of each case, each with its own seed (default: {DEFAULT_SEEDS}).",
        ),
        delay_option(DEFAULT_DELAY_US),
    ),
    columns=COLUMNS,
    prepare=prepare,
    places=(SIMULATION,),
)
