"""The primitives experiment: push and pull over size, and the stages of a 64-byte push."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from knotless_experiments.framework.experiment import (
    EMULATION,
    SIMULATION,
    Common,
    Experiment,
)
from knotless_experiments.framework.routed import Measured
from knotless_experiments.studies.primitives.columns import COLUMNS
from knotless_experiments.workloads.messages.campaign import MessageCampaign, fabric_options

if TYPE_CHECKING:
    from knotless_experiments.workloads.messages.pair import Exchanging

OPERATIONS = ("push", "pull")
LONGEST = 1 << 20
STAGES_BYTES = 64
"""As in table 3 of Yamamoto et al."""


class PrimitivesCampaign(MessageCampaign):
    """Each operation over size, and the stages of a push."""

    def cases(self) -> list[tuple[str, int]]:
        """Return each operation and size, then the stages, for each repeat."""
        over_size = [(operation, size) for operation in OPERATIONS for size in self.sizes]
        return [*over_size, ("stages", STAGES_BYTES)] * self.repeats

    def measure(self, pair: Exchanging, operation: str, size: int) -> Measured:
        """Measure how long an operation, or each stage of a push, takes."""
        from knotless_experiments.studies.primitives.stages import STAGES, stage_times_us

        pair.settle()
        measured, served = pair.exchange(operation, size, self.count)
        row = {
            "operation": operation,
            "bytes": size,
            "on": self.on,
            "fabric": self.fabric,
            "engine": self.engine,
            "hosts": f"{pair.client.name}-{pair.server.name}",
        }
        if operation == "stages":
            times = dict(zip(STAGES, stage_times_us(measured, served), strict=True))
            row |= {"median_us": times[STAGES[-1]], "p99_us": None, "mbit_per_s": None}
            row["stages_us"] = times
        else:
            row |= {"median_us": measured["median_us"], "p99_us": measured["p99_us"]}
            row["mbit_per_s"] = size * 8 / measured["median_us"]
            times = {"whole": measured["median_us"]}
        samples = [{"stage": stage, "us": us} for stage, us in times.items()]
        return {**row, **pair.judge()}, samples


def prepare(common: Common, options: Mapping[str, Any]) -> PrimitivesCampaign:
    """Check the settings; raises ExperimentError or another KnotlessError."""
    return PrimitivesCampaign.from_options(common, options, LONGEST)


EXPERIMENT = Experiment(
    name="primitives",
    summary="Push and pull over size, and the start of each stage of a 64-byte push.",
    example="sudo knotless run primitives --fabric torus,4,4 --hosts h1,h11",
    options=fabric_options(),
    columns=COLUMNS,
    prepare=prepare,
    places=(EMULATION, SIMULATION),
)
