"""What exists while a fabric changes: the parts of the old fabric and those of the new one. Pure.

Parts that come are used when their rules are in place. Parts that go away exist until no frame can
be on them any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from knotless.base.errors import FabricError
from knotless.topologies.fabric import Fabric
from knotless.topologies.failures import NO_FAILURES, Failures
from knotless.topologies.union import described, hosts_of_both, removed, union


@dataclass(frozen=True)
class Existing:
    """All switches, hosts and links that exist, and what has failed of them.

    ``staying`` are the hosts that were there when the fabric last was settled, and stay, by name.
    It is None while nothing comes or goes away.
    """

    fabric: Fabric
    failures: Failures = NO_FAILURES
    staying: frozenset[str] | None = None

    def extended(self, fabric: Fabric) -> Existing:
        """Return it with the parts of another fabric, which is the new goal.

        Raises
        ------
        FabricError
            Not all of these parts can exist at the same time, or no host stays.

        """
        whole, staying = union(self.fabric, fabric), self.staying
        failures = Failures.of(whole, self.failures.names)
        if removed(self.fabric, fabric) or removed(fabric, self.fabric):
            both = hosts_of_both(self.fabric, fabric)
            staying = both if staying is None else staying & both
            if not staying:
                raise FabricError(
                    f"no host stays in {fabric.name}; restart the controller to begin with it"
                )
        return Existing(whole, failures, staying)

    def failed(self, names: set[str]) -> Existing:
        """Return it with these failures, and no others."""
        return replace(self, failures=Failures.of(self.fabric, names))

    def leaving(self, fabric: Fabric) -> list[str]:
        """Return what exists and is not in a fabric, one text for each part."""
        return [described(part) for part in removed(self.fabric, fabric)]
