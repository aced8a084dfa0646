"""Messages between processes on different hosts: a user-level network interface (docs/messages.md).

An address is ``(mac, port)``, such as ``("02:00:00:00:00:01", 7)``. Invalid arguments raise
ValueError, time limits TimeoutError, errors of the operating system EndpointError.
"""

Address = tuple[str, int]

class EndpointError(Exception):
    """The interface does not exist or disappeared, the port is in use, or permission is missing."""

class DeliveryError(EndpointError):
    """Acknowledged messages were not delivered: their peers are lost or have restarted."""

class Message:
    """A received message. ``to_address`` is the address of the endpoint or of a group."""

    @property
    def from_address(self) -> Address: ...
    @property
    def to_address(self) -> Address: ...
    @property
    def acknowledged(self) -> bool: ...
    @property
    def data(self) -> bytes: ...

class AccessPattern:
    """The bytes of an area that an operation reads or writes, in order."""

    @staticmethod
    def contiguous(offset: int, bytes: int) -> AccessPattern:
        """One range."""

    @staticmethod
    def strided(offset: int, block: int, stride: int, count: int) -> AccessPattern:
        """``count`` ranges of ``block`` bytes; their starts are ``stride`` bytes apart."""

    @staticmethod
    def bitmap(offset: int, element: int, elements: int, bits: bytes) -> AccessPattern:
        """The elements i, of ``element`` bytes, whose bit ``i % 8`` of byte ``i // 8`` is set."""

    @staticmethod
    def runs(runs: list[tuple[int, int]]) -> AccessPattern:
        """Ranges (offset, bytes), in ascending order and without overlap."""

class Twin:
    """A copy of an area. Only changes to it are sent, so several writers can share an area."""

    def __init__(self, offset: int, data: bytes) -> None:
        """Copy ``data``, which starts at ``offset`` in its area."""

class Outcome:
    """The result of an operation; ``data`` is what was read or received."""

    @property
    def done(self) -> bool: ...
    @property
    def status(self) -> str: ...
    @property
    def data(self) -> bytes: ...
    @property
    def from_address(self) -> Address | None: ...

class Endpoint:
    """A port of an interface in this network namespace, released when the object is deleted."""

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
        """Open one of the ports 0..255. Needs CAP_NET_RAW.

        ``receive_buffers`` buffers are posted at the start; with ``repost`` each is posted again
        when its message is taken. Operations fail if the peer is silent for ``give_up_s``. Waits
        poll for ``spin_us`` (default 100) before they sleep, less often if polling fails.
        """

    @property
    def address(self) -> Address: ...
    @property
    def held_back_by_emulator(self) -> bool:
        """Whether a link emulator serves the interface; it blocks the sender while paused."""

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
        """Post a message and return its number; waits while all send descriptors are in use."""

    def receive(self, timeout_s: float | None = None) -> Message | None:
        """Return the oldest message, or None if none arrives in time. With 0, do not wait."""

    def post_receive(self, count: int) -> None:
        """Post receive buffers, each for one message of any length."""

    def progress(self) -> None:
        """Process pending work without waiting."""

    def completion(self) -> tuple[int, str | None] | None:
        """Return (number, None or why it failed) of a completed message; None if there is none."""

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until all posted messages are sent or, if requested, acknowledged.

        Returns whether they are complete in time. Raises DeliveryError if messages have failed that
        neither ``completion`` nor an earlier call has reported: no process has their port, no host
        their MAC, or another process has taken the port. Operations report their own ``outcome``.
        """

    def register(self, area: int, size: int, *, read: bool = True, write: bool = True) -> None:
        """Register an area of ``size`` zero bytes that others may read, write or both."""

    def area(self, area: int) -> bytes:
        """Return a copy of an area of this process."""

    def write_area(self, area: int, offset: int, data: bytes) -> None:
        """Write to an area of this process."""

    def push(self, to: Address, area: int, pattern: AccessPattern, data: bytes) -> int:
        """Post a write to an area of another process; return the operation's number."""

    def pull(self, to: Address, area: int, pattern: AccessPattern) -> int:
        """Post a read of an area of another process."""

    def push_diff(self, to: Address, area: int, twin: Twin, now: bytes) -> int:
        """Post a write of the differences between ``twin`` and ``now``, which becomes the twin."""

    def mcast(
        self, group: Address, members: list[Address], area: int, pattern: AccessPattern, data: bytes
    ) -> int:
        """Post a write to the same area of all members; each must have joined the group."""

    def isend(self, to: Address, tag: int, data: bytes) -> int:
        """Post a message that the receiver matches by sender and tag."""

    def irecv(self, from_address: Address | None = None, tag: int | None = None) -> int:
        """Post a receive of such a message; None matches any sender, or any tag."""

    def lock(self, to: Address, lock: int) -> int:
        """Request one of another process's locks."""

    def unlock(self, to: Address, lock: int) -> int:
        """Release a lock."""

    def is_pending(self, operation: int) -> bool:
        """Return whether an operation is in progress, without processing any work."""

    def outcome(self, operation: int, timeout_s: float | None = None) -> Outcome | None:
        """Wait for an operation and serve others' requests; None if it is still in progress."""

    def serve(self, timeout_s: float) -> None:
        """Serve others' requests for this time."""

    def counters(self) -> dict[str, int]:
        """Return counters of completed and refused operations (docs/messages.md)."""
