"""LogP: what a barrier costs by the formulas of Iwasaki et al. (section 5.1.2).

References
----------
Iwasaki, Matsuoka, Sakae, Ogawa: fast user-level barriers on a PC cluster with Ethernet.
Culler et al., LogP: towards a realistic model of parallel computation, 1993.

"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

ALGORITHMS = ("shuffle", "tree2", "tree3", "tree4", "concurrent", "unicast")
"""The barriers, in the order of the papers."""


@dataclass(frozen=True)
class LogP:
    """Four of LogP's parameters, in microseconds (the fifth is the number of processes).

    ``send_us`` o_s and ``receive_us`` o_r: how long a processor is busy with a message;
    ``latency_us`` L: how long the network is; ``gap_us`` g: the least time between
    two messages that one processor sends, or receives.
    """

    send_us: float
    latency_us: float
    receive_us: float
    gap_us: float

    @property
    def one_way_us(self) -> float:
        """o_s + L + o_r: half a round trip."""
        return self.send_us + self.latency_us + self.receive_us

    def further_us(self, networks: int = 1) -> float:
        """Return what each further message costs that a processor receives at the same time.

        Over several networks the gaps pass side by side, what the processor does does not.
        """
        return max(self.receive_us, self.gap_us / networks)


PAPER_001 = LogP(send_us=3.0, latency_us=17.5, receive_us=9.5, gap_us=9.0)
"""The library MCD on Fast Ethernet with a switch, at 4 bytes."""


def mean_of(found: Sequence[LogP]) -> LogP:
    """Return the mean of each parameter."""
    count = len(found)
    return LogP(
        send_us=sum(one.send_us for one in found) / count,
        latency_us=sum(one.latency_us for one in found) / count,
        receive_us=sum(one.receive_us for one in found) / count,
        gap_us=sum(one.gap_us for one in found) / count,
    )


def barrier_us(algorithm: str, processes: int, logp: LogP, networks: int = 1) -> float:
    """Return what a barrier costs when all enter at once.

    The formulas for trees are the paper's, with a real logarithm where the tree is not
    complete. The paper has none for the concurrent barrier (n - 1 receptions one after the
    other) and for gather and release by unicast (twice the steps of Koibuchi et al.).
    """
    if processes < 2:
        return 0.0
    steps = (processes - 1).bit_length()
    if algorithm == "shuffle":
        return steps * logp.one_way_us
    if algorithm == "unicast":
        return 2 * steps * logp.one_way_us
    ways = processes if algorithm == "concurrent" else int(algorithm.removeprefix("tree"))
    phase_us = logp.one_way_us + (ways - 2) * logp.further_us(networks)
    return phase_us * math.log(processes, ways) + logp.one_way_us
