"""Why verdicts assume a reserve: acyclic dependencies are not enough for one shared pool."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from knotless.forwarding.from_plan import state_of_plan
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.check import verdict_of

CELLS = 8


@dataclass
class SharedPools:
    """Two switches with a host each, which send to each other without end.

    Every frame in a switch takes a cell of its pool. ``reserve`` cells are kept for each of the
    two inputs; the others are shared. A sender waits while the receiver's input has no cell: all
    links are lossless. Frames of the peer go on to the host, which takes them at any time.
    """

    reserve: int
    of_host: list[int] = field(default_factory=lambda: [0, 0])
    of_peer: list[int] = field(default_factory=lambda: [0, 0])
    delivered: int = 0

    def accepts(self, switch: int, held: int) -> bool:
        shared = CELLS - 2 * self.reserve
        inputs = (self.of_host[switch], self.of_peer[switch])
        used = sum(max(0, cells - self.reserve) for cells in inputs)
        return held < self.reserve or used < shared

    def moves(self) -> list[tuple[str, int]]:
        """Return all that can happen next."""
        possible = []
        for switch in (0, 1):
            peer = 1 - switch
            if self.accepts(switch, self.of_host[switch]):
                possible.append(("enter", switch))
            if self.of_host[switch] and self.accepts(peer, self.of_peer[peer]):
                possible.append(("forward", switch))
            if self.of_peer[switch]:
                possible.append(("deliver", switch))
        return possible

    def make(self, kind: str, switch: int) -> None:
        if kind == "enter":
            self.of_host[switch] += 1
        elif kind == "forward":
            self.of_host[switch] -= 1
            self.of_peer[1 - switch] += 1
        else:
            self.of_peer[switch] -= 1
            self.delivered += 1

    def run(self, seed: int, events: int) -> int:
        """Let random moves happen; return how many did before none was possible."""
        rng = random.Random(seed)  # noqa: S311
        for number in range(events):
            possible = self.moves()
            if not possible:
                return number
            self.make(*rng.choice(possible))
        return events


@pytest.mark.seeds(20)
def test_a_shared_pool_freezes_without_a_reserve(seed: int) -> None:
    pools = SharedPools(reserve=0)
    assert pools.run(seed, 100_000) < 100_000
    assert (pools.of_host, pools.of_peer) == ([CELLS, CELLS], [0, 0])


@pytest.mark.seeds(20)
def test_it_goes_on_with_a_reserve_of_one_frame(seed: int) -> None:
    pools = SharedPools(reserve=1)
    assert pools.run(seed, 20_000) == 20_000
    assert pools.delivered > 1_000


def test_the_verdict_on_these_switches_says_what_it_assumes() -> None:
    verdict = verdict_of(state_of_plan(make_plan(load("mesh,2,1"), "dor")), "pfc")
    assert verdict.acyclic
    assert verdict.assumes[0].startswith("each lossless priority of each input has room")
    assert verdict_of(state_of_plan(make_plan(load("mesh,2,1"), "dor")), "none").assumes == []
