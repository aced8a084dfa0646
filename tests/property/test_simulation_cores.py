"""Simulations of generated fabrics have one result, whatever the number of cores."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from knotless.base.errors import PlanError, SimulationError
from knotless.base.flow_control import FLOW_CONTROLS
from knotless.routing.plan import make_plan
from knotless.simulation import Buffers, LinkChange, Load, Scenario, simulate
from knotless.topologies import Fabric
from tests.support.fabric_strategies import graphs, grids

LOADS = (
    Load(),
    Load("poisson", 0.6),
    Load("poisson", 0.5, message_bytes=5000),
    Load("constant", 0.7),
)
DELAYS_US = (0.5, 1.0, 1.23, 3.0, 40.0)

ONE_CORE_BECAUSE = (
    None,
    "there are too few switches",
    "credits on lines that lose frames, which return them at once",
)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    fabric: Fabric = draw(st.one_of(graphs(), grids()))
    assume(len(fabric.hosts) > 1 and len(fabric.switches) > 1)
    # Equal links, on which many events coincide, or others.
    delays = st.sampled_from(draw(st.sampled_from([DELAYS_US[1:2], DELAYS_US])))
    rates = st.sampled_from(draw(st.sampled_from([(10_000,), (1000, 2500, 10_000)])))
    jitters = st.sampled_from(draw(st.sampled_from([(0.0,), (0.0, 0.3, 2.0)])))
    losses = st.sampled_from(draw(st.sampled_from([(0.0,), (0.0, 0.01)])))
    fabric = replace(
        fabric,
        hosts=tuple(
            # Loads need hosts of one rate.
            replace(host, rate_mbps=10_000, delay_us=draw(delays))
            for host in fabric.hosts
        ),
        links=tuple(
            replace(
                link,
                rate_mbps=draw(rates),
                delay_us=draw(delays),
                jitter_us=draw(jitters),
                loss=draw(losses),
            )
            for link in fabric.links
        ),
    )
    engine = draw(st.sampled_from(["updown", "minimal", "adaptive"]))
    multipath = draw(st.sampled_from(["none", "spray"])) if engine == "minimal" else "none"
    flow_controls = [
        one for one in FLOW_CONTROLS if engine != "adaptive" or one not in ("credits", "bubble")
    ]
    try:
        plan = make_plan(fabric, engine, multipath=multipath)
    except PlanError:
        assume(False)
        raise
    channels = [f"{link.a}:{link.a_port}" for link in fabric.links]
    changes = [
        LinkChange(at_us, channel, up)
        for channel in draw(st.lists(st.sampled_from(channels), max_size=2, unique=True))
        for at_us, up in [(60.0, False), (110.0, True)]
    ]
    return Scenario(
        plan,
        draw(st.sampled_from(["permutation", "shift:1"])),
        draw(st.sampled_from(LOADS)),
        flow_control=draw(st.sampled_from(flow_controls)),
        buffers=draw(st.sampled_from([Buffers(), Buffers(xoff=3000, xon=1500, queue=4000)])),
        cut_through=draw(st.sampled_from([0, 64])),
        link_changes=tuple(changes),
        warm_up_us=draw(st.sampled_from([0.0, 30.0])),
        duration_us=200.0,
        seed=draw(st.integers(0, 3)),
    )


@given(scenarios())
def test_the_result_does_not_depend_on_the_number_of_cores(scenario: Scenario) -> None:
    try:
        one = simulate(scenario)
    except SimulationError as error:
        # A permutation may leave every host as it is.
        assume("has no flows" not in str(error))
        raise
    for cores in (2, 3, 4):
        several = simulate(scenario, cores=cores)
        assert several.result_sha256 == one.result_sha256
        assert several.report.first_pauses == one.report.first_pauses
        assert several.one_core_because in ONE_CORE_BECAUSE
