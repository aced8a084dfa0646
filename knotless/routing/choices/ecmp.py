"""Equal-cost multipath: a hash of source and destination chooses one of all equal next hops.

All packets of a pair of hosts take one path and keep their order, as in today's Clos fabrics.

References
----------
Hopps, Analysis of an equal-cost multi-path algorithm, RFC 2992, 2000.

"""

from __future__ import annotations

from typing import ClassVar

from knotless.routing.choices.choice import Binding
from knotless.routing.choices.next_hops import EqualNextHops


class Ecmp(EqualNextHops):
    """A hash of source and destination address chooses at each switch."""

    name: ClassVar[str] = "ecmp"
    binding: ClassVar[Binding] = Binding.HASH
    mark: ClassVar[str] = ", ECMP"
    description: ClassVar[str] = "a hash of source and destination chooses one"
