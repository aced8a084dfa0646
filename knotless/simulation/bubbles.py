"""Rings of simulated switches, which frames enter only if room is left for another."""

from __future__ import annotations

import numpy as np

from knotless._core import simulator
from knotless.base.flow_control import FlowControl
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.channels import VCS_PER_CHANNEL
from knotless.simulation.channels import ChannelTable
from knotless.simulation.settings import Switching
from knotless.verification.bubbles import rings_of
from knotless.verification.dependencies import edges_of


def use_bubbles(
    simulation: simulator.Simulation,
    state: ForwardingState,
    table: ChannelTable,
    switching: Switching,
) -> None:
    """Have a simulation that has not run be with bubbles, if its flow control is.

    Where cycles of dependencies are no rings, frames need credit for themselves alone. ValueError
    if rules change or switches have settings.
    """
    if switching.flow_control is not FlowControl.BUBBLE or table.hubs:
        return
    channels = state.channels
    rings = []
    for number, ring in enumerate(rings_of(edges_of(state)).rings, 1):
        links, priorities = np.divmod(np.array(ring), VCS_PER_CHANNEL)
        places = table.at_ports(channels.tail[links], channels.out_port[links])
        rings += [(*one, number) for one in zip(places.tolist(), priorities.tolist(), strict=True)]
    entry_units, apart, *_ = switching.bubbles
    simulation.use_bubbles(rings, entry_units, apart)
