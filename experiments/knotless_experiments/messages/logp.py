"""LogP: the time of a barrier by the formulas of Iwasaki et al. (section 5.1.2).

References
----------
Iwasaki, Matsuoka, Sakae, Ogawa: fast user-level barriers on a PC cluster with Ethernet.
Culler et al., LogP: towards a realistic model of parallel computation, 1993.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

ALGORITHMS = ("shuffle", "tree2", "tree3", "tree4", "concurrent", "unicast")
"""The barriers, in the order of the papers."""


@dataclass(frozen=True)
class LogP:
    """Four of LogP's parameters, in microseconds (the fifth is the number of processes), and two.

    ``send_us`` o_s and ``receive_us`` o_r: the time for which a message occupies a processor;
    ``latency_us`` L: the time in the network; ``gap_us`` g: the minimum time between
    two messages that one processor sends. Of messages that arrive together only the first
    costs ``interrupt_us``, a part of o_r; ``line_us`` is the minimum time between two that one
    line delivers.
    """

    send_us: float
    latency_us: float
    receive_us: float
    gap_us: float
    interrupt_us: float = 0.0
    line_us: float = 0.0

    @property
    def one_way_us(self) -> float:
        """o_s + L + o_r: half a round trip."""
        return self.send_us + self.latency_us + self.receive_us

    def together_us(self, messages: int, networks: int = 1) -> float:
        """Return the time in which a processor receives ``messages`` that are sent at once.

        On several networks they arrive in parallel, with an interrupt for each network.
        """
        each_us = max(self.receive_us - self.interrupt_us, self.line_us / networks)
        interrupts = min(messages, networks)
        return self.one_way_us + (messages - 1) * each_us + (interrupts - 1) * self.interrupt_us


PAPER_001 = LogP(
    send_us=3.0,
    latency_us=17.5,
    receive_us=9.5,
    gap_us=9.0,
    interrupt_us=10 / 3,
    line_us=84 * 8 / 100,
)
"""The library MCD on Fast Ethernet with a switch, at 4 bytes: the shortest frame.

The interrupt is not among the paper's LogP figures. It says (5.2) that a 3-way tree is slower
over two networks, 169 us instead of 159 us at 15 processes, because two messages that come by
two interfaces interrupt twice; that tree has three phases.
"""


def mean_of(samples: Sequence[LogP]) -> LogP:
    """Return the mean of each parameter."""
    names = [field.name for field in fields(LogP)]
    return LogP(
        **{name: sum(getattr(one, name) for one in samples) / len(samples) for name in names}
    )


def barrier_us(algorithm: str, processes: int, logp: LogP, networks: int = 1) -> float:
    """Return the time of a barrier that all processes enter at once.

    The formulas are the paper's, which writes log_k n for the phases of a tree. Here these are
    the messages that follow from each other: floor(log2 n) with two ways, for no number below n
    has more ones in binary; with more ways each with the children that its parents have. The
    paper has no formula for the concurrent barrier (n - 1 receptions one after the other) and for
    gather and release by unicast (twice the steps of Koibuchi et al.).
    """
    if processes < 2:
        return 0.0
    if algorithm == "shuffle":
        return (processes - 1).bit_length() * logp.one_way_us
    phases = processes.bit_length() - 1
    if algorithm == "unicast":
        return 2 * phases * logp.one_way_us
    if algorithm == "tree2":
        return (phases + 1) * logp.one_way_us
    ways = processes if algorithm == "concurrent" else int(algorithm.removeprefix("tree"))
    return _gather_us(processes, max(ways, 3), logp, networks) + logp.one_way_us


def _gather_us(processes: int, ways: int, logp: LogP, networks: int) -> float:
    """Return the time to gather along the k-way tree of core/messages/barrier, phase by phase."""
    total_us = 0.0
    while processes > 1:
        below = (processes - 1) // (ways - 1)
        # Surplus children have no children, and were received before those that have.
        together = ways - 1 if below > 1 else processes - 1
        total_us += logp.together_us(together, networks)
        processes = below
    return total_us
