"""Agreement of emulator and simulator: the same cases run on both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from knotless_experiments.framework.campaign import Campaign
from knotless_experiments.framework.experiment import EMULATION, Common, Experiment
from knotless_experiments.framework.options import duration_of, list_option, within
from knotless_experiments.framework.routed import Measured
from knotless_experiments.framework.switches import parameters_of
from knotless_experiments.studies.agreement.columns import COLUMNS

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric
    from knotless_experiments.studies.agreement.cases import Case

DURATION_S, QUICK_DURATION_S = 3.0, 2.0
LIMITS_S = (0.5, 600.0)
LIMITS_MBPS = (1.0, 100.0)


def prepare(common: Common, options: Mapping[str, Any]) -> Campaign[Case]:
    """Check the settings; raises KnotlessError if they are invalid."""
    from knotless_experiments.studies.agreement import cases, measure

    usual_s = QUICK_DURATION_S if common.quick else DURATION_S
    duration_s = duration_of(common, usual_s, LIMITS_S)
    if common.rate_mbps is not None:
        within(common.rate_mbps, LIMITS_MBPS, "--rate", "Mbit/s")
    runs = cases.cases(common, options.get("case"))

    def live(lab: EmulatedFabric, case: Case, seed: int) -> Measured:
        del seed  # the case has its own seed, which determines its traffic
        return measure.both(lab, case, duration_s)

    parameters = {
        "on": common.on,
        "duration_s": duration_s,
        "cases": [[*case.key, case.routed.spec] for case in runs if case.repeat == 1],
        "settings": {
            case.settings: parameters_of(case.routed.switch_settings)["switch_settings"]
            for case in runs
            if case.settings
        },
        "repeats": common.repeats,
    }
    return Campaign(common.on, runs, parameters, common.seed, live)


EXPERIMENT = Experiment(
    name="agreement",
    summary="The same fabrics, routes and flows in the emulator and in the simulator.",
    example="sudo knotless run agreement --quick",
    options=(
        list_option(
            "--case",
            "Some of knot, share-2, share-3, torus-updown, torus-dor, credits, switches, ecmp.",
        ),
    ),
    columns=COLUMNS,
    prepare=prepare,
    places=(EMULATION,),
)
