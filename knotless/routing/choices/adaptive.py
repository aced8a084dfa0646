"""Adaptive choices: a frame waits for all next hops at once, and takes the first that is free."""

from __future__ import annotations

from typing import Any, ClassVar

from knotless.routing.choices.choice import Binding, PlannedPaths
from knotless.routing.choices.next_hops import NextHopChoice
from knotless.routing.graphs.channels import Channels
from knotless.routing.graphs.next_hop_sets import NextHopSets


class AdaptiveChoice(NextHopChoice):
    """A choice among next hops with priorities, in the order of preference.

    OpenFlow rules, Open vSwitch and the tables of 802.1Q switches choose on arrival; the proof
    would not hold for them.
    """

    name: ClassVar[str] = "adaptive"
    binding: ClassVar[Binding] = Binding.FIRST_FREE
    no_switch: ClassVar[str] = (
        "switches would have to choose a port when a frame begins to be sent, and OpenFlow and"
        " 802.1Q ones choose on arrival; use plan, analyse and simulate, or another engine"
    )
    is_repairable: ClassVar[bool] = False

    @property
    def vcs(self) -> int:
        """The number of virtual channels of all next hops."""
        priorities = self.sets.priorities
        return 1 + (0 if priorities is None else int(priorities.max(initial=0)))

    @property
    def split_sets(self) -> NextHopSets:
        """The next hops on shortest paths: the escape is for when these are not free."""
        return self.sets.on_priority(0)

    def state_arrays(self, plan: PlannedPaths) -> dict[str, Any]:
        """Return the sets with their virtual channels, and the priority of each host."""
        of_sets = {"set_vcs": self.sets.priorities, "set_stays": self.sets.stays}
        return super().state_arrays(plan) | of_sets

    def as_json(self, plan: PlannedPaths) -> dict[str, object]:
        """Return ``next_hops`` as virtual channels in the order of preference, and ``stays``.

        If ``stays``, packets keep away from priority 0 once they have left it.
        """
        return {"stays": self.sets.stays, **super().as_json(plan)}

    def _listed(self, channels: Channels, switch: int, to: int) -> list[int] | list[str]:
        return [channels.name(*hop) for hop in self.sets.hops_at(switch, to)]
