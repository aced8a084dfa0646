"""Barriers between processes on different hosts (docs/barriers.md).

Invalid arguments raise ValueError, time limits TimeoutError, errors of the operating system
:class:`knotless._core.endpoint.EndpointError`.
"""

class BarrierError(Exception):
    """A process of the barrier does not answer: no more barriers will complete."""

class Barrier:
    """One of the processes of barriers, on a port of its host's interface.

    No process leaves :meth:`wait` before all have entered it. The object answers other processes
    only inside of its calls; it has no thread. So open it in all processes before one enters the
    first barrier, as what is sent to a closed port is lost, and where frames can be lost, call
    :meth:`answer` between barriers.
    """

    def __init__(
        self,
        interface: str,
        port: int,
        members: list[str],
        *,
        algorithm: str = "shuffle",
        group: str | None = None,
        order: list[int] | None = None,
        retry_s: float = 0.1,
        patience_s: float = 10.0,
    ) -> None:
        """Claim one of the ports 0..255 of an interface in this namespace. Needs CAP_NET_RAW.

        Parameters
        ----------
        interface
            Its MAC is one of ``members``; its place among them is the rank of this process.
        port
            The same in all processes, and not that of an ``Endpoint`` of this interface.
        members
            The MACs of all processes, by rank; the same list in all of them.
        algorithm
            shuffle, tree2, tree3, tree4, concurrent or unicast.
        group
            The multicast MAC that trees and concurrent release by (``knotless up --multicast``).
        order
            The visiting list of unicast; None is the order of the ranks.
        retry_s
            A process that misses a message asks for it after this time, then less often.
        patience_s
            A process that is asked and silent for so long counts as dead; at least 8 ``retry_s``.

        """

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""

    @property
    def size(self) -> int:
        """The number of processes."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when a frame has arrived; then call ``answer``."""

    def wait(self, timeout_s: float | None = None) -> None:
        """Enter the next barrier, and leave it when all processes have entered.

        Raises TimeoutError if they have not in time; the next call waits for the same barrier.
        Raises BarrierError if a process is dead.
        """

    def answer(self, timeout_s: float) -> None:
        """Answer the other processes for this time; with 0, only those that have asked already.

        Needed where frames can be lost: others may miss this process's last messages.
        """

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until all messages have been sent; return whether they are.

        Call it before the process ends: a paused interface may hold the last messages back.
        """

    def counters(self) -> dict[str, int]:
        """Return passed barriers, and asked, repeated, stale and invalid messages."""
