"""Traffic patterns, as papers 000 (acknowledged messages) and 004 (open loop) measure them.

References
----------
Koibuchi et al.: deadlock-free deterministic routings on the RHiNET-2 cluster, figures 4 to 7, 9.
Otsuka et al.: switch-tagged VLAN routing, section 5.2.

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from experiments.framework.campaign import Campaign
from experiments.framework.experiment import EMULATION, SIMULATION, Common, Experiment, shown_by
from experiments.framework.options import delay_of, delay_option, duration_of, list_option, within
from experiments.framework.routed import Measured
from experiments.studies.traffic.row import SAMPLE_TYPES

if TYPE_CHECKING:
    from emulation.network import EmulatedFabric
    from experiments.studies.traffic.cases import Case

DELAY_US = 5000.0
"""One way, on every link: what a frame may take in Open vSwitch without being late."""
DURATION_S = {EMULATION: 3.0, SIMULATION: 20.0}
QUICK_DURATION_S = {EMULATION: 1.0, SIMULATION: 20.0}
LIMITS_S = (0.2, 600.0)
LIMITS_MBPS = {EMULATION: (0.5, 100.0), SIMULATION: (0.001, 1e6)}


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises KnotlessError for those that make no sense."""
    from experiments.studies.traffic import cases, measure

    usual = QUICK_DURATION_S if common.quick else DURATION_S
    duration_s = duration_of(common, usual[common.on], LIMITS_S)
    if common.rate_mbps is not None:
        within(common.rate_mbps, LIMITS_MBPS[common.on], "--rate", "Mbit/s")
    found = cases.cases(common, options, delay_of(common, options, DELAY_US))

    def live(lab: EmulatedFabric, case: Case, seed: int) -> Measured:
        return measure.emulated(lab, case, duration_s=duration_s, seed=seed)

    def virtual(case: Case, seed: int) -> Measured:
        return measure.simulated(case, duration_s=duration_s, seed=seed)

    parameters = {
        "on": common.on,
        "duration_s": duration_s,
        "cases": [
            [c.part, c.routed.spec, c.routed.routes, c.pattern, c.protocol, c.message_bytes]
            for c in found
            if c.repeat == 1
        ],
        "repeats": common.repeats,
    }
    return Campaign(common.on, found, parameters, common.seed, live, virtual)


EXPERIMENT = Experiment(
    name="traffic",
    summary="Traffic patterns on fabrics and engines: acknowledged messages, and open loop.",
    example="sudo knotless run traffic --part open-loop --fabric torus,4,4 --protocol udp",
    options=(
        list_option("--part", "acknowledged (paper 000), open-loop (paper 004), or both."),
        click.Option(
            ["--fabric"], multiple=True, metavar="SPEC", help="A fabric; may be given repeatedly."
        ),
        list_option("--engine", "Engines; updown:2 has 2 virtual channels; native."),
        list_option("--select", "spread, low-port, or both."),
        list_option("--pattern", "Patterns (default: bit-reversal,transpose,butterfly,...)."),
        list_option("--size", "Bytes of acknowledged messages."),
        list_option("--protocol", "udp, tcp or both, in open loop."),
        delay_option(DELAY_US),
    ),
    sample_types=SAMPLE_TYPES,
    prepare=prepare,
    present=shown_by("experiments.studies.traffic.show"),
    places=(EMULATION, SIMULATION),
    identity=("part", "fabric", "routes", "pattern", "protocol", "message_bytes"),
    measures=("mean_mbps",),
)
