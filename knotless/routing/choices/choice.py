"""The interface of a kind of choice: what a frame can choose from, and who chooses when.

A kind of choice is a class in a module of :mod:`knotless.routing.choices`; the choices of a plan
are one of its values. ``--multipath`` offers those of
:data:`~knotless.routing.choices.requested.KINDS`; others come with the routes of an engine
(:class:`ChosenRoutes`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import PlanError
from knotless.routing.engine import Engine
from knotless.routing.graphs.channels import Channels, Ints
from knotless.routing.graphs.next_hop_sets import NextHopSets
from knotless.routing.graphs.task import Task
from knotless.routing.request import PlanRequest
from knotless.routing.routes import ExplicitRoutes, Routes
from knotless.topologies.fabric import Fabric

Loads = NDArray[np.float64]
Pick = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], Ints]
"""What a hash picks: takes numbers of flows, and for each its switch and the number of choices."""


class Binding(Enum):
    """The time and the means by which a frame is bound to one of its choices.

    It is what simulated switches must do. With ``FIRST_FREE``, a plan cannot deadlock if no set of
    virtual channels can block itself (:mod:`knotless.verification.dependencies`); with the others,
    if the union of all choices has no cycle of channel dependencies.
    """

    NONE = "there is no choice"
    HASH = "on arrival, by a hash of source and destination"
    ANY = "on arrival, each frame anew"
    FIRST_FREE = "when it begins to be sent, to the first that is free"
    QUEUES = "at its first switch, by the lengths of queues"

    @property
    def keeps_order(self) -> bool:
        """Whether all frames of two hosts take one path."""
        return self in (Binding.NONE, Binding.HASH)


class PlannedPaths(Protocol):
    """The part of a :class:`~knotless.routing.plan.Plan` that its choice reads."""

    @property
    def fabric(self) -> Fabric: ...  # noqa: D102
    @property
    def channels(self) -> Channels: ...  # noqa: D102
    @property
    def routes(self) -> Routes: ...  # noqa: D102
    @property
    def pair_vlans(self) -> Ints: ...  # noqa: D102
    @property
    def vlans(self) -> Ints: ...  # noqa: D102
    @property
    def tagging(self) -> str: ...  # noqa: D102


class Flows(NamedTuple):
    """Flows on a plan.

    Attributes
    ----------
    plan : PlannedPaths
        The plan.
    row : array of int32, shape (flows,)
        The row of each source in the plan's routes.
    source, target : arrays of int32, shape (flows,)
        The switches of sources and destinations.

    """

    plan: PlannedPaths
    row: Ints
    source: Ints
    target: Ints


class Choice(ABC):
    """The choices of the frames of a plan.

    Attributes
    ----------
    name : str
        Its name as in ``--multipath``, or that of its engine.
    binding : Binding
        When a frame is bound to one of its choices.
    mark : str
        What follows the name of the engine in tables and lines about fabrics.
    no_switch : str
        Why neither OpenFlow switches nor those with 802.1Q tables can do it; empty: they can.
    no_rules : str
        Why OpenFlow rules for it cannot be proven, if they exist; empty: they can.
    is_repairable : bool
        Whether a plan can be repaired, rather than made anew for what remains.
    shared_vlans : str
        What each VLAN is for; empty: as requested.
    default_loads : str
        The entry of :meth:`split_loads` that a file of loads has.

    """

    name: ClassVar[str]
    binding: ClassVar[Binding]
    mark: ClassVar[str] = ""
    no_switch: ClassVar[str] = ""
    no_rules: ClassVar[str] = ""
    is_repairable: ClassVar[bool] = True
    shared_vlans: ClassVar[str] = ""
    default_loads: ClassVar[str] = "split"

    @property
    @abstractmethod
    def sizes(self) -> NDArray[np.int64]:
        """The number of choices in each set of them."""

    @property
    def has_rules(self) -> bool:
        """Whether there are OpenFlow rules that can be proven."""
        return not (self.no_switch or self.no_rules)

    @property
    def vcs(self) -> int:
        """The number of virtual channels of all choices; 0: those of the routes."""
        return 0

    @property
    def vlan_count(self) -> int:
        """The number of VLANs of all choices; 0: those of the pairs of hosts."""
        return 0

    @property
    def next_hops(self) -> NextHopSets | None:
        """The sets of next hops, if these are what a frame chooses from at each switch."""
        return None

    def with_next_hops(self, sets: NextHopSets) -> Choice:  # noqa: ARG002 - there is no place
        """Return the same kind of choice among other next hops.

        Raises
        ------
        ValueError
            Frames do not choose among next hops.

        """
        raise ValueError(f"{self.name}: there are no sets of next hops")

    @abstractmethod
    def as_json(self, plan: PlannedPaths) -> dict[str, object]:
        """Return all choices for :func:`json.dumps`."""

    @abstractmethod
    def state_arrays(self, plan: PlannedPaths) -> dict[str, Any]:
        """Return what ``knotless._core.forwarding.of_plan`` follows unicasts by."""

    def summary(self) -> dict[str, object]:
        """Return the name, and the sizes of the sets of several choices, for a plan's metrics."""
        return {
            "multipath": self.name,
            "sets_of_next_hops": int((self.sizes > 1).sum()),
            "max_next_hops": int(self.sizes.max(initial=0)),
        }

    def hashed_hops(self, flows: Flows, pick: Pick) -> list[Ints]:  # noqa: ARG002 - no hash
        """Return the channels of flows if ``pick`` chooses, an array for each hop.

        After the end of a path the channel is -1. Raises PlanError if no hash chooses.
        """
        raise PlanError(f"multipath {self.name}: no hash chooses the channels of a flow")

    def split_loads(self, flows: Flows) -> dict[str, Loads]:  # noqa: ARG002 - nothing is split
        """Return the flows on each channel, (channels,), if choices carry equal shares.

        Of some kinds there are several cases, by name. Raises PlanError if there is no choice.
        """
        raise PlanError("the plan has one path for each pair")


class Planning(NamedTuple):
    """The input of the choices of a plan; routes and VLANs are those of single paths."""

    engine: Engine
    task: Task
    request: PlanRequest
    routes: Routes
    pair_vlans: Ints


class Planned(NamedTuple):
    """The parts of a plan that its choices determine."""

    routes: Routes
    pair_vlans: Ints
    choice: Choice


class RequestedChoice(Choice):
    """A kind of choice that is requested with ``--multipath``.

    Attributes
    ----------
    description : str
        What the help of the option says.
    has_layers : bool
        Whether there is a number of layers to choose.

    """

    description: ClassVar[str]
    has_layers: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def is_possible_with(cls, engine: Engine) -> bool:
        """Return whether an engine has what the kind needs."""

    @classmethod
    @abstractmethod
    def planned(cls, planning: Planning) -> Planned:
        """Return what a plan with this choice has.

        Raises
        ------
        PlanError
            The engine lacks what the kind needs, another option does not fit, or more virtual
            channels or VLANs are needed than there may be.

        """


@dataclass(frozen=True)
class ChosenRoutes(ExplicitRoutes):
    """Broadcast trees, and for unicasts the choices of an engine instead of paths.

    Attributes
    ----------
    choice : Choice
        What frames have a choice of.

    """

    choice: Choice
