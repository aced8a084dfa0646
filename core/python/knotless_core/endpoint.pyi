"""Messages between the processes of hosts: a user-level network interface (docs/messages.md).

An address is ``(mac, port)``, such as ``("02:00:00:00:00:01", 7)``. Arguments that make no sense
raise ValueError, a wait that was too long TimeoutError, the machine's refusals EndpointError.
"""

Address = tuple[str, int]

class EndpointError(Exception):
    """No such interface, not permitted, a port that is taken, an interface that is gone."""

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
        """Whether a link emulator is behind the interface: a paused one blocks the sender."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when a frame has come; then ``progress``."""

    def join(self, group: str) -> None:
        """Take messages for this multicast MAC address, too."""

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
        """Return the oldest message; None when none came in time. 0 only looks."""

    def post_receive(self, count: int) -> None:
        """Post receive buffers, each for one message of any length."""

    def progress(self) -> None:
        """Do what is to be done now, without waiting."""

    def completion(self) -> tuple[int, str | None] | None:
        """Return a posted message that is complete, and why it failed, or None if it did not."""

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until all posted messages are complete; return whether they are."""

    def counters(self) -> dict[str, int]:
        """Return what was done and refused so far (docs/messages.md)."""
