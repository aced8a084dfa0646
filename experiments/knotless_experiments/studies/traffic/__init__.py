"""Traffic patterns, as in papers 000 (acknowledged messages) and 004 (open loop).

References
----------
Koibuchi et al.: deadlock-free deterministic routings on the RHiNET-2 cluster, figures 4 to 7, 9.
Otsuka et al.: switch-tagged VLAN routing, section 5.2.

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from knotless.cli.numbers import Whole
from knotless_experiments.framework.campaign import Campaign
from knotless_experiments.framework.experiment import (
    EMULATION,
    SIMULATION,
    Common,
    Experiment,
    ExperimentError,
)
from knotless_experiments.framework.options import (
    delay_of,
    delay_option,
    duration_of,
    list_option,
    within,
)
from knotless_experiments.framework.routed import Measured
from knotless_experiments.framework.switches import (
    check,
    parameters_of,
    settings_of,
    switch_option,
)
from knotless_experiments.studies.traffic.columns import COLUMNS

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric
    from knotless_experiments.studies.traffic.cases import Case

DELAY_US = 5000.0
"""One-way delay of every link: the time that a frame may take in Open vSwitch."""
DURATION_S = {EMULATION: 3.0, SIMULATION: 20.0}
QUICK_DURATION_S = {EMULATION: 1.0, SIMULATION: 20.0}
LIMITS_S = {EMULATION: (0.001, 600.0), SIMULATION: (0.001, 600.0)}
LIMITS_MBPS = {EMULATION: (0.5, 1e4), SIMULATION: (0.001, 1e6)}


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises KnotlessError if they are invalid."""
    from knotless_experiments.studies.traffic import cases, measure

    cut_through = options.get("cut_through") or 0
    if cut_through and common.on == EMULATION:
        raise ExperimentError("--cut-through: emulated switches store and forward")
    default = QUICK_DURATION_S if common.quick else DURATION_S
    duration_s = duration_of(common, default[common.on], LIMITS_S[common.on])
    if common.rate_mbps is not None:
        within(common.rate_mbps, LIMITS_MBPS[common.on], "--rate", "Mbit/s")
    switches = settings_of(options)
    runs = cases.cases(common, options, delay_of(common, options, DELAY_US), switches)
    check((case.routed, case.routed.plan.flow_control) for case in runs)

    def live(lab: EmulatedFabric, case: Case, seed: int) -> Measured:
        return measure.emulated(lab, case, duration_s=duration_s, seed=seed)

    def virtual(case: Case, seed: int) -> Measured:
        return measure.simulated(case, duration_s=duration_s, seed=seed, cut_through=cut_through)

    parameters = {
        "on": common.on,
        "duration_s": duration_s,
        "cases": [
            [c.part, c.routed.spec, c.routed.routes, c.pattern, c.protocol, c.message_bytes]
            for c in runs
            if c.repeat == 1
        ],
        "repeats": common.repeats,
        "cut_through": cut_through,
        **parameters_of(switches),
    }
    return Campaign(common.on, runs, parameters, common.seed, live, virtual)


EXPERIMENT = Experiment(
    name="traffic",
    summary="Traffic patterns on fabrics and engines: acknowledged messages, and open loop.",
    example="sudo knotless run traffic --part open-loop --fabric torus,4,4 --protocol udp",
    options=(
        list_option("--part", "acknowledged (paper 000), open-loop (paper 004), or both."),
        click.Option(
            ["--fabric"], multiple=True, metavar="SPEC", help="A fabric; may be repeated."
        ),
        list_option("--engine", "Engines; NAME:N for N virtual channels; auto."),
        list_option("--select", "spread, low-port, or both."),
        list_option("--pattern", "Patterns (default: bit-reversal,transpose,butterfly,...)."),
        list_option("--size", "Bytes of acknowledged messages."),
        list_option("--protocol", "udp, tcp or both, in open loop."),
        delay_option(DELAY_US),
        click.Option(
            ["--cut-through"],
            type=Whole(0, 1500),
            default=0,
            show_default=True,
            help="Simulation: switches forward after this many bytes; 0: after all.",
        ),
        switch_option(),
    ),
    columns=COLUMNS,
    prepare=prepare,
    places=(EMULATION, SIMULATION),
)
