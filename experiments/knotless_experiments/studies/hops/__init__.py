"""Bandwidth, latency and barriers of two hosts over the number of switches between them.

References
----------
Koibuchi et al.: deadlock-free deterministic routings on the RHiNET-2 cluster, figures 8 and 10.
Otsuka et al.: switch-tagged VLAN routing, figure 9: with and without switch tagging.

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from knotless.base.name_lists import choice, names_in
from knotless.routing.request import PlanRequest
from knotless_experiments.framework.campaign import Campaign
from knotless_experiments.framework.experiment import (
    EMULATION,
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
    numbers,
)
from knotless_experiments.framework.routed import Measured, Routed
from knotless_experiments.studies.hops.columns import COLUMNS
from knotless_experiments.studies.hops.measure import (
    BARRIER,
    BOTH_WAYS,
    MEASURES,
    TAGGINGS,
    UNTAGGED,
)
from knotless_experiments.workloads.messages.size import message_size

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric
    from knotless_experiments.studies.hops.measure import Case

SMALL_BYTES, LARGE_BYTES = 16, 1792
MOST_SWITCHES = 8
"""Two hosts on each of eight switches: the number of ports that Open vSwitch serves promptly."""
RATE_MBPS, DELAY_US = 10.0, 1000.0
DURATION_S, QUICK_DURATION_S = 2.0, 0.5
LIMITS_S = (0.001, 600.0)
LIMITS_MBPS = (0.5, 1e6)


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises KnotlessError if they are invalid."""
    from knotless_experiments.studies.hops import measure

    usual_s = QUICK_DURATION_S if common.quick else DURATION_S
    duration_s = duration_of(common, usual_s, LIMITS_S)
    rate_mbps = given(common.rate_mbps, RATE_MBPS, LIMITS_MBPS, "--rate", "Mbit/s")
    delay_us = delay_of(common, options, DELAY_US)
    apart = numbers(
        options.get("switches"),
        (1, MOST_SWITCHES) if common.quick else range(1, MOST_SWITCHES + 1),
        (1, MOST_SWITCHES),
        "--switches",
    )
    usual_sizes = (str(SMALL_BYTES), str(LARGE_BYTES))
    sizes = [message_size(part) for part in names_in(options.get("size"), usual_sizes)]
    possible = TAGGINGS if common.on == EMULATION else TAGGINGS[:1]
    usual_taggings = (
        [TAGGINGS[0], UNTAGGED] if common.quick and common.on == EMULATION else possible
    )
    taggings = choice(options.get("tagging"), possible, "--tagging", usual_taggings)
    kinds = choice(options.get("measure"), MEASURES, "--measure")
    loads = [(kind, size) for kind in kinds for size in _sizes_of(kind, sizes)]
    cases = []
    for tagging in taggings:
        # The plan for no tagging is used only for its paths, which are unique on a line.
        planned = "switch" if tagging == UNTAGGED else tagging
        spec = f"mesh,{MOST_SWITCHES},hosts=2,rate={rate_mbps:g},delay={delay_us:g}"
        settings = () if tagging != UNTAGGED else (("controller", "none"),)
        routed = Routed(spec, PlanRequest.from_options(engine="dor", tagging=planned), settings)
        cases += [
            measure.Case(routed, kind, tagging, switches, size, repeat)
            for kind, size in loads
            for switches in apart
            for repeat in range(1, common.repeats + 1)
        ]

    def live(lab: EmulatedFabric, case: Case, seed: int) -> Measured:
        del seed
        return measure.emulated(lab, case, duration_s=duration_s)

    def virtual(case: Case, seed: int) -> Measured:
        return measure.simulated(case, seed=seed)

    parameters = {
        "on": common.on,
        "switches": apart,
        "measures": list(kinds),
        "sizes": sizes,
        "taggings": list(taggings),
        "rate_mbps": rate_mbps,
        "delay_us": delay_us,
        "duration_s": duration_s,
        "repeats": common.repeats,
    }
    return Campaign(common.on, cases, parameters, common.seed, live, virtual)


def _sizes_of(kind: str, sizes: list[int]) -> list[int]:
    """Return the sizes to measure: none for a barrier, the largest one for both directions."""
    return {BARRIER: [0], BOTH_WAYS: [max(sizes)]}.get(kind, sizes)


EXPERIMENT = Experiment(
    name="hops",
    summary="What each switch on a path costs: time and bandwidth, with and without tagging.",
    example="sudo knotless run hops --quick",
    options=(
        list_option("--switches", f"Numbers of switches, 1 to {MOST_SWITCHES}."),
        list_option("--measure", f"Some of {', '.join(MEASURES)} (default: all)."),
        list_option("--size", "Bytes of a message."),
        list_option("--tagging", f"Some of {', '.join(TAGGINGS)}."),
        delay_option(DELAY_US),
    ),
    columns=COLUMNS,
    prepare=prepare,
    places=(EMULATION, SIMULATION),
)
