"""Spraying: each frame takes any of all equal next hops, so that frames can overtake each other.

References
----------
Dixit, Prakash, Hu, Kompella, On the impact of packet spraying in data center networks, 2013.

"""

from __future__ import annotations

from typing import ClassVar

from knotless.routing.choices.choice import Binding
from knotless.routing.choices.next_hops import EqualNextHops


class Spray(EqualNextHops):
    """Switches choose for each frame anew."""

    name: ClassVar[str] = "spray"
    binding: ClassVar[Binding] = Binding.ANY
    no_rules: ClassVar[str] = "no OpenFlow rule sprays frames: multipath ecmp has rules"
    description: ClassVar[str] = "each frame takes any, and its order is not kept"
