"""A fabric that was read from files: its forwarding states, and what is not known about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from forwarding.imported.findings import Findings
from forwarding.state import ForwardingState
from routing.flow_control import Edges
from routing.graphs.channels import Channels
from topologies.fabric import Fabric

SentAs = Callable[[int, int], int]
"""Returns the label, such as the SL, with which a source (its index) sends to a destination."""


@dataclass(frozen=True)
class Traffic:
    """What can be sent at the same time: its state, and the label of each packet at its start.

    If the same pairs are sent in several ways, the undelivered pairs of one of these count.
    """

    state: ForwardingState
    sent_as: SentAs
    counted: bool = True


def every_vc_waits(dependencies: Edges) -> tuple[NDArray[np.int64], Edges]:
    """Return the dependencies of packets that hold and wait for their own virtual channels.

    This is so if all virtual channels are lossless and packets keep theirs from the output of one
    switch to the input of the next. Returns the rows of ``dependencies`` (held channel and
    virtual channel, wanted ones, ...) that matter, and (rows, 4) the nodes of each.
    """
    return np.arange(len(dependencies)), dependencies[:, :4]


@dataclass(frozen=True)
class ImportedFabric:
    """A fabric that was read from files.

    ``traffics`` are sent at the same time, between ``pairs`` of a host and a destination;
    ``label`` is what their labels are called (``SL``). ``waits`` turns the dependencies of packets
    into those of lossless virtual channels. ``ignored`` are files that no reader recognised.
    ``of_rules`` says that the states are those of OpenFlow rules; what is not known about these is
    in ``findings``. ``management`` is what is sent to switches themselves; the verdict says only
    whether it would add a cycle.
    """

    fabric: Fabric
    channels: Channels
    flow_control: str
    traffics: tuple[Traffic, ...]
    pairs: int
    label: str
    findings: Findings = field(default_factory=Findings)
    ignored: tuple[str, ...] = ()
    waits: Callable[[Edges], tuple[NDArray[np.int64], Edges]] = every_vc_waits
    of_rules: bool = False
    management: tuple[Traffic, ...] = ()
