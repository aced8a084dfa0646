"""Messages between processes on different hosts: a user-level network interface (docs/messages.md).

An address is ``(mac, port)``, such as ``("02:00:00:00:00:01", 7)``. Arguments that make no sense
raise ValueError, a wait that was too long TimeoutError, the machine's refusals EndpointError.
"""

Address = tuple[str, int]

class EndpointError(Exception):
    """The interface does not exist or disappeared, the port is in use, or permission is missing."""

class Message:
    """A message that has arrived. ``to_address`` is the endpoint's, or that of a group."""

    @property
    def from_address(self) -> Address: ...
    @property
    def to_address(self) -> Address: ...
    @property
    def acknowledged(self) -> bool: ...
    @property
    def data(self) -> bytes: ...

class Shape:
    """The bytes of an area that an operation reads or writes, and their order."""

    @staticmethod
    def contiguous(offset: int, bytes: int) -> Shape:
        """One range."""

    @staticmethod
    def strided(offset: int, block: int, stride: int, count: int) -> Shape:
        """``count`` ranges of ``block`` bytes, at intervals of ``stride`` bytes."""

    @staticmethod
    def bitmap(offset: int, element: int, elements: int, bits: bytes) -> Shape:
        """Elements of ``element`` bytes: those whose bit ``i % 8`` of byte ``i // 8`` is set."""

    @staticmethod
    def runs(runs: list[tuple[int, int]]) -> Shape:
        """Ranges (offset, bytes), ascending and without overlap."""

class Twin:
    """A copy of an area, with which only changes are sent, so that several writers can share it."""

    def __init__(self, offset: int, data: bytes) -> None:
        """Copy ``data``, which begins at ``offset`` of its area."""

class Outcome:
    """How an operation ended, as text; ``data`` is what was read or received."""

    @property
    def done(self) -> bool: ...
    @property
    def status(self) -> str: ...
    @property
    def data(self) -> bytes: ...
    @property
    def from_address(self) -> Address | None: ...

class Endpoint:
    """A port of an interface of this network namespace, claimed until this is garbage."""

    def __init__(
        self,
        interface: str,
        port: int,
        *,
        receive_buffers: int | None = None,
        repost: bool = True,
        send_descriptors: int | None = None,
        give_up_s: float | None = None,
        spin_us: float | None = None,
    ) -> None:
        """Claim one of the ports 0..255. Needs CAP_NET_RAW.

        ``receive_buffers`` are posted at the start; ``repost`` posts a message's buffer
        again when it is taken. A peer silent for ``give_up_s`` is given up. ``spin_us`` (100)
        looks for a frame for so long before sleeping until one comes, where that pays.
        """

    @property
    def address(self) -> Address: ...
    @property
    def held_back_by_emulator(self) -> bool:
        """Whether the interface belongs to a link emulator, which blocks the sender when paused."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when a frame has arrived; then call ``progress``."""

    def join(self, group: str) -> None:
        """Also receive messages for this multicast MAC address."""

    def send(
        self,
        to: Address,
        data: bytes,
        *,
        acknowledged: bool = False,
        timeout_s: float | None = None,
    ) -> int:
        """Post a message and return its number; wait while all send descriptors are in use."""

    def receive(self, timeout_s: float | None = None) -> Message | None:
        """Return the oldest message, or None if none arrives in time. 0 does not wait."""

    def post_receive(self, count: int) -> None:
        """Post receive buffers, each for one message of any length."""

    def progress(self) -> None:
        """Process pending work without waiting."""

    def completion(self) -> tuple[int, str | None] | None:
        """Return a posted message that is complete, and why it failed, or None if it did not."""

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until all posted messages are complete; return whether they are."""

    def register(self, area: int, size: int, *, read: bool = True, write: bool = True) -> None:
        """Register an area of zeroes that others may read, or write, or both."""

    def area(self, area: int) -> bytes:
        """Return a copy of an area of this process."""

    def write_area(self, area: int, offset: int, data: bytes) -> None:
        """Write into an area of this process."""

    def push(self, to: Address, area: int, shape: Shape, data: bytes) -> int:
        """Post a write into an area of another process; return the operation's number."""

    def pull(self, to: Address, area: int, shape: Shape) -> int:
        """Post a read of an area of another process."""

    def push_diff(self, to: Address, area: int, twin: Twin, now: bytes) -> int:
        """Post a write of the differences between ``twin`` and ``now``, which becomes the twin."""

    def mcast(
        self, group: Address, members: list[Address], area: int, shape: Shape, data: bytes
    ) -> int:
        """Post a write into the same area of all members, who have joined the group."""

    def isend(self, to: Address, tag: int, data: bytes) -> int:
        """Post a message that the receiver asks for by sender and tag."""

    def irecv(self, from_address: Address | None = None, tag: int | None = None) -> int:
        """Post a receive of such a message; None matches any sender, or any tag."""

    def lock(self, to: Address, lock: int) -> int:
        """Request one of another process's locks."""

    def unlock(self, to: Address, lock: int) -> int:
        """Release a lock."""

    def is_pending(self, operation: int) -> bool:
        """Return whether an operation is in progress; makes no progress itself."""

    def outcome(self, operation: int, timeout_s: float | None = None) -> Outcome | None:
        """Wait for an operation, serving requests of others; None if it is still in progress."""

    def serve(self, timeout_s: float) -> None:
        """Serve requests of others for this time."""

    def counters(self) -> dict[str, int]:
        """Return counters of completed and refused operations (docs/messages.md)."""
