"""The packet-level simulator: arrays as input, a simulation that runs in slices, arrays as result.

Times are picoseconds. Invalid arguments raise a ValueError of one line.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from knotless._core.forwarding import State

DROP_CAUSES: tuple[str, ...]
"""Names of the causes for which frames are dropped; ``broadcast_limit`` is no loss."""

RETRY_COUNTS: tuple[str, ...]
"""Names of what links that repeat frames count: those of SAI, and how often they gave up."""

BROADCAST_SHARE: float
"""Share of its line that broadcasts of a host may take, by default."""

BROADCAST_BURST_BYTES: int
"""Bytes of them, gaps between frames included, that may come at once, by default."""

GAP_BYTES: int
"""Bytes on the wire of preamble, start delimiter and inter-frame gap."""

PAUSE_FRAME_BYTES: int
"""Bytes of a PAUSE or PFC frame, FCS included."""

CREDIT_UNIT_BYTES: int
"""Bytes of a unit of credit by default: a block of InfiniBand."""

_Numbers = NDArray[np.uint64]

def wire_bytes(frame_bytes: int) -> int:
    """Return the bytes that a frame occupies on the wire, gap included.

    ``frame_bytes`` is its length with FCS; shorter frames are padded to 64 bytes.
    """

def link_flow_control(fabric: str, is_host_link: bool) -> tuple[str, list[int]]:
    """Return the flow control of a link, and the class of each priority; none if it never pauses.

    ``fabric`` is a :class:`knotless.base.flow_control.FlowControl`; other names raise ValueError.
    The priorities of a class are paused together.
    """

def headroom_bytes(rate_bps: int, delay_ps: int, longest_frame_bytes: int) -> int:
    """Return the headroom: bytes that an input buffer needs above XOFF to lose no frame."""

def pause_frame_headroom_bytes(rate_bps: int, response_ps: int, longest_frame_bytes: int) -> int:
    """Return the bytes that it needs in addition where pause frames take their place on the wire.

    ``response_ps`` is the time after which a sender obeys one.
    """

def longest_frame_bytes(packet_bytes: int) -> int:
    """Return the longest frame for which buffers have room by default, FCS included."""

def number_channels(
    links: NDArray[np.uint32], hosts: NDArray[np.uint32]
) -> tuple[
    NDArray[np.int64], NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]
]:
    """Number the channels of a fabric, in the same order as the emulator.

    Channels that leave switches come first, by (switch, port), then those that leave hosts.
    ``links`` (links, 4) are the links between switches: switch and port of both ends. ``hosts``
    (hosts, 2) are switch and port of each host. Returns columns with an entry for each channel:
    ``leaves``, the port there (0 for a host), ``enters``, ``back``, and the link, numbered through
    ``links`` and then ``hosts``. Two links at one port raise ValueError.
    """

def channel_settings(
    rate_bps: NDArray[np.uint64],
    delay_ps: NDArray[np.uint64],
    jitter_ps: NDArray[np.uint64],
    is_host_link: NDArray[np.bool_],
    *,
    flow_control: str,
    packet_bytes: int,
    queue: int | None,
    xoff: int | None,
    xon: int | None,
    headroom: int | None,
    credit: int | None,
    credit_unit: int | None,
) -> tuple[
    NDArray[np.uint64],
    NDArray[np.uint64],
    NDArray[np.uint64],
    NDArray[np.uint64],
    NDArray[np.uint64],
    NDArray[np.uint32],
    NDArray[np.uint64],
]:
    """Return queue limit, XOFF, XON, headroom, credit, its unit, and jitter of each channel.

    ``flow_control`` is as for :func:`link_flow_control`. A limit of None gets a default that loses
    no packets of ``packet_bytes`` bytes. A jitter below the default is the default. XON not below
    XOFF raises ValueError; so does, under credits, credit that a longest frame can never get.
    """

class _Channels(Protocol):
    """The channels of a fabric; columns have one entry per channel.

    Channels that leave switch 0 come first, then those of the other switches in order, then those
    of hosts.
    """

    @property
    def leaves(self) -> NDArray[np.int64]:
        """The switch that the channel leaves; -1 - H for host H."""
    @property
    def enters(self) -> NDArray[np.int64]:
        """The switch that the channel enters; -1 - H for host H."""
    @property
    def back(self) -> NDArray[np.uint32]:
        """The channel in the other direction of its link."""
    @property
    def rate_bps(self) -> NDArray[np.uint64]: ...
    @property
    def delay_ps(self) -> NDArray[np.uint64]: ...
    @property
    def flow_control(self) -> str:
        """That of all links, as for :func:`link_flow_control`."""
    @property
    def queue_bytes(self) -> NDArray[np.uint64]:
        """Limit of an egress queue without flow control, in bytes."""
    @property
    def xoff_bytes(self) -> NDArray[np.uint64]: ...
    @property
    def xon_bytes(self) -> NDArray[np.uint64]: ...
    @property
    def headroom_bytes(self) -> NDArray[np.uint64]: ...
    @property
    def credit_bytes(self) -> NDArray[np.uint64]:
        """Under credits: the room of each virtual channel, in bytes."""
    @property
    def credit_unit_bytes(self) -> NDArray[np.uint32]: ...
    @property
    def watchdog_ps(self) -> NDArray[np.uint64]:
        """Detection time of the watchdog of the sender; 0 means that it has none."""
    @property
    def restoration_ps(self) -> NDArray[np.uint64]:
        """Restoration time of that watchdog."""
    @property
    def watchdog_action(self) -> str:
        """What watchdogs do in a storm: ``drop``, ``drop-egress`` or ``forward``."""
    @property
    def jitter_ps(self) -> NDArray[np.uint64]:
        """Frames arrive up to this much later, at random, in order."""
    @property
    def loss(self) -> NDArray[np.float64]:
        """The share of frames that the channel loses at random, 0 to 1."""
    @property
    def line_errors(self) -> tuple[float, int]:
        """Bit errors for each bit, 0 to 1, and how many frames in a row have any on average."""
    @property
    def retry(self) -> int | None:
        """Links repeat frames, and give up after so many replays, 0: never. None: they do not."""
    @property
    def broadcast_share(self) -> float:
        """Share of its line that broadcasts of a host may take, 0 to 1; 0: no limit."""
    @property
    def broadcast_burst_bytes(self) -> int:
        """Bytes of them, gaps between frames included, that may come at once."""
    @property
    def pause_limit(self) -> tuple[int, int] | None:
        """How long hosts may pause the channels to them: permille, and picoseconds at once.

        A host that pauses for at most this share (below 1000) is always obeyed. None: no limit.
        """
    @property
    def hubs(self) -> bool:
        """Whether the switches are repeater hubs: half duplex, with collisions."""
    @property
    def ports(self) -> NDArray[np.uint32]:
        """The port by which the channel leaves its switch; 0 for a host."""
    @property
    def switches(self) -> tuple[str, ...]:
        """The names of the switches; may be empty without ``switch_settings``."""
    @property
    def switch_settings(self) -> str | None:
        """JSON of :meth:`knotless.base.switch_settings.SwitchFile.for_model`; None: none."""

class Tables:
    """The forwarding of unicasts: a forwarding state in the form of the simulator."""

    def __new__(cls, state: State, ports: NDArray[np.uint16]) -> Tables:
        """Convert a state, without the interpreter's lock.

        ``ports`` (state's channels,) is the index of each channel among those that leave its
        switch, in the simulator's order. ValueError if a switch copies unicasts, or if its
        behaviour is unknown.
        """

    def repeated(self, copies: int) -> Tables:
        """Return the tables of several unconnected copies of the fabric.

        The switches and hosts of each copy follow those of the one before.
        """

class Traffic:
    """The traffic; it can be used by one simulation only."""

    @staticmethod
    def flows(
        sources: NDArray[np.uint32],
        targets: NDArray[np.int64],
        arrivals: str,
        mean_ps: float,
        count: int,
        message_bytes: int,
    ) -> Traffic:
        """Flows with the same arrivals.

        ``arrivals`` is ``saturate``, ``poisson`` or ``constant`` (``mean_ps`` apart), or
        ``acknowledged`` (each message is sent when the previous one is acknowledged, ``count`` per
        flow). A target is a host, or -1 for a random other host for each message, or -2 - T for
        multicast tree T.
        """

    @staticmethod
    def phases(destinations: NDArray[np.uint32], message_bytes: int, barrier: bool) -> Traffic:
        """(phases, hosts): the destination of each host in each phase; 2**32 - 1 for none."""

    @staticmethod
    def trace(
        at_ps: NDArray[np.uint64],
        sources: NDArray[np.uint32],
        targets: NDArray[np.uint32],
        message_bytes: NDArray[np.uint64],
    ) -> Traffic:
        """Messages at given times, in order."""

_Messages = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint64]]

def poisson_messages(
    sources: NDArray[np.uint32],
    targets: NDArray[np.int64],
    mean_ps: NDArray[np.float64],
    points: list[tuple[int, float]],
    hosts: int,
    seed: int,
    most: int,
    until_ps: int,
) -> _Messages:
    """Return time, source, destination and bytes of messages of random sizes at random times.

    Each row of ``sources`` and ``targets`` (as for :meth:`Traffic.flows`, no trees) sends after
    independent, exponentially distributed times with its mean. ``points`` are (bytes, share of the
    messages that are not longer), linear between two points. These are the first ``most``
    messages, and none at or after ``until_ps``.
    """

def select_members(
    seed: int,
    switches: NDArray[np.uint32],
    sources: NDArray[np.uint64],
    destinations: NDArray[np.uint64],
    counts: NDArray[np.uint16],
) -> NDArray[np.uint16]:
    """Return which next hop, of ``counts``, the rules of switches choose on Open vSwitch 3.1.

    Switches are numbered from 0. ``seed`` (32 bits) is that of the fabric's hash; source and
    destination addresses have 48 bits. All ports are up.
    """

def incast_messages(
    senders: list[int],
    count: int,
    receiver: int | None,
    message_bytes: int,
    arrivals: str,
    mean_ps: float,
    hosts: int,
    seed: int,
    most: int,
    until_ps: int,
) -> _Messages:
    """Return the same columns of incasts: several hosts send to one at the same time.

    ``senders`` send, or if there are none, ``count`` hosts that are drawn for each incast. Without
    a ``receiver`` it is drawn too. ``arrivals`` is ``constant``, from time 0, or ``poisson``.
    """

class Deadlock:
    """A deadlock: channels that can never resume; a channel is (number, priority class)."""

    @property
    def since_ps(self) -> int:
        """The time at which the last channel of the cycle stopped."""
    @property
    def members(self) -> list[tuple[int, int]]: ...
    @property
    def cycle(self) -> list[tuple[int, int]]: ...
    @property
    def frames(self) -> list[list[tuple[int, int]]]:
        """For each channel of the cycle, (source, destination) of the frames that wait there."""
    @property
    def broken_ps(self) -> int | None:
        """The time at which a watchdog or a link change ended it; None if it has not ended."""

class Histogram:
    """A histogram of times with buckets 3 % wide; mean, minimum and maximum are exact."""

    @property
    def total(self) -> int: ...
    @property
    def mean_ps(self) -> float: ...
    @property
    def min_ps(self) -> int: ...
    @property
    def max_ps(self) -> int: ...
    @property
    def p50_ps(self) -> int: ...
    @property
    def p99_ps(self) -> int: ...
    @property
    def floors_ps(self) -> NDArray[np.uint64]: ...
    @property
    def counts(self) -> NDArray[np.uint64]: ...

class Report:
    """Counters since the warm-up, unless stated otherwise.

    ``flow_*`` have an entry for each flow (for each host if the traffic defines no flows),
    ``channel_*`` for each channel.
    """

    @property
    def now_ps(self) -> int: ...
    @property
    def measured_ps(self) -> int: ...
    @property
    def events(self) -> int:
        """All events, warm-up included."""
    @property
    def packet_hops(self) -> int:
        """Data packets transmitted on links, warm-up included."""
    @property
    def in_network(self) -> int: ...
    @property
    def messages_under_way(self) -> int: ...
    @property
    def last_arrival_ps(self) -> int:
        """When the last data packet arrived at a host."""
    @property
    def last_complete_ps(self) -> int: ...
    @property
    def flow_packets(self) -> NDArray[np.uint64]: ...
    @property
    def flow_bytes(self) -> NDArray[np.uint64]: ...
    @property
    def flow_messages(self) -> NDArray[np.uint64]: ...
    @property
    def flow_lost(self) -> NDArray[np.uint64]: ...
    @property
    def flow_marked(self) -> NDArray[np.uint64]:
        """Data packets that arrived with a mark of a switch."""
    @property
    def flow_notifications(self) -> NDArray[np.uint64]:
        """Congestion notifications that the senders of the flow have received."""
    @property
    def flow_retransmitted(self) -> NDArray[np.uint64]:
        """Data packets that the senders of the flow have retransmitted."""
    @property
    def flow_latency_mean_ps(self) -> NDArray[np.float64]: ...
    @property
    def flow_latency_min_ps(self) -> NDArray[np.uint64]: ...
    @property
    def flow_latency_max_ps(self) -> NDArray[np.uint64]: ...
    @property
    def flow_latency_p50_ps(self) -> NDArray[np.uint64]: ...
    @property
    def flow_latency_p99_ps(self) -> NDArray[np.uint64]: ...
    @property
    def latency(self) -> Histogram: ...
    @property
    def completion(self) -> Histogram: ...
    @property
    def channel_tx_frames(self) -> NDArray[np.uint64]: ...
    @property
    def channel_tx_bytes(self) -> NDArray[np.uint64]: ...
    @property
    def channel_rx_frames(self) -> NDArray[np.uint64]: ...
    @property
    def channel_pauses(self) -> NDArray[np.uint64]: ...
    @property
    def channel_paused_ps(self) -> NDArray[np.uint64]: ...
    @property
    def channel_queue_peak_bytes(self) -> NDArray[np.uint64]: ...
    @property
    def channel_ingress_peak_bytes(self) -> NDArray[np.uint64]: ...
    @property
    def channel_drops(self) -> list[NDArray[np.uint64]]:
        """By cause, in the order of ``DROP_CAUSES``."""
    @property
    def channel_broadcasts_over(self) -> NDArray[np.uint64]:
        """Broadcasts beyond the limit of the host that sends on the channel, dropped or not."""
    @property
    def channel_marked_frames(self) -> NDArray[np.uint64]:
        """Frames that egress queues have marked, by channel and priority: shape (channels, 8)."""
    @property
    def channel_storms(self) -> list[NDArray[np.uint64]]:
        """Storms that watchdogs have detected, that are over, and that were only reported."""
    @property
    def channel_pause_frames(self) -> NDArray[np.uint64]:
        """PAUSE and PFC frames on each channel, where these take their place on the wire."""
    @property
    def channel_retries(self) -> list[NDArray[np.uint64]]:
        """By count, in the order of ``RETRY_COUNTS``; empty arrays if links repeat no frames."""
    @property
    def channel_replay_peak_bytes(self) -> NDArray[np.uint64]: ...
    @property
    def channel_replay_mean_bytes(self) -> NDArray[np.float64]: ...
    @property
    def pools(self) -> list[tuple[int, str, int, int]]:
        """The pools of switches with settings, warm-up included.

        Number of the switch, name, the most bytes in use, and the most headroom in use.
        """
    @property
    def deadlock(self) -> Deadlock | None:
        """The first deadlock, whether or not it has ended."""
    @property
    def deadlocks(self) -> int:
        """The number of deadlocks so far."""
    @property
    def answered(self) -> int:
        """Messages that were sent for others and taken, warm-up included."""
    @property
    def station_collisions(self) -> NDArray[np.uint64]:
        """By host: transmissions that collided; empty without hubs."""
    @property
    def station_given_up(self) -> NDArray[np.uint64]:
        """By host: frames dropped after 16 collisions; empty without hubs."""
    @property
    def first_pauses(self) -> list[tuple[int, tuple[int, int], tuple[int, int] | None, bool]]:
        """The first pause of each channel, in order of time, warm-up included.

        When it took effect (ps); the channel, as in :class:`Deadlock`; the channel for which most
        bytes of the ingress buffer waited, if any did; whether that was paused too.
        """

class Simulation:
    """A simulation; :meth:`run` starts and continues it."""

    def __init__(
        self,
        switches: int,
        hosts: int,
        channels: _Channels,
        tables: Tables,
        trees: list[NDArray[np.uint32]],
        traffic: Traffic,
        *,
        seed: int,
        warm_up_ps: int,
        end_ps: int,
        packet_bytes: int,
        header_bytes: int,
        link_changes: list[tuple[int, int, bool]],
        broadcasts: list[int] = ...,
        transport: str | None = ...,
        receivers: list[tuple[int, int]] = ...,
        messages: list[tuple[int | None, int, int | None, int]] = ...,
    ) -> None:
        """``header_bytes`` 0 means store-and-forward, otherwise cut-through after this many bytes.

        ``trees`` are multicast trees: rows of (switch, channel that leaves it, priority).
        ``link_changes`` are (time, one channel of the link, whether it goes up). ``broadcasts`` are
        the numbers of the trees, from 0, whose frames are broadcasts, which are limited. Without a
        ``transport`` hosts send as fast as their lines permit; it is the JSON of
        :meth:`knotless.simulation.transport.Transport.for_model`. ``receivers`` are hosts that take
        frames from their buffer at a rate of their own, and those rates in bit/s. ``messages`` are
        the message classes of hosts, if they do not take all that arrives: the class of what they
        send before they take one, the reserve of a host, the bound of outstanding ones at each
        other host, and what the class adds to priorities.
        """

    def run(self, events: int) -> bool:
        """Run about this many events without the interpreter's lock; False if none are left."""

    def run_to(self, at_ps: int) -> None:
        """Run all events up to a time without the interpreter's lock."""
    def sample(
        self, at_ps: int
    ) -> tuple[_Numbers, _Numbers, _Numbers, _Numbers, _Numbers, _Numbers]:
        """Run all events up to a time and return counters, warm-up included.

        Samples do not change the results.

        By channel and priority, shape (channels, 8): frames and bytes sent, time paused (ps), bytes
        in the egress queue and in the ingress buffer; by channel: frames dropped.
        """
    def hold(self, switch: int, generation: int) -> None:
        """Have a switch hold another generation of its rules from now on; at first it holds 0.

        Frames that it has forwarded already are not affected. ValueError if there is no such switch
        or generation: see ``replayed`` of :func:`knotless._core.forwarding.of_rules`.
        """
    def passed(self) -> tuple[_Numbers, _Numbers]:
        """Return the unicast frames so far, by channel and priority, shape (channels, 8).

        First those that switches have put into egress queues to other switches, then those that
        have arrived at switches. ValueError if there is only one generation of rules.
        """
    def take_turns(self) -> None:
        """Have messages of a host take turns, packet by packet; else one follows the other."""
    def use_cores(self, cores: int) -> str | None:
        """Use several cores, before the simulation starts and after all other settings.

        The results are those of one core. Returns None, or why one core is used nevertheless.
        """
    def pause_host(self, at_ps: int, host: int, until_ps: int) -> None:
        """Have a host's request to pause all priorities of its link reach its switch at a time.

        It lasts until ``until_ps`` (2**64 - 1: for ever) and replaces an earlier request; one that
        is over by then ends it. ValueError if the host does not exist or cannot pause its link.
        """
    def standing_behind(self, host: int) -> list[tuple[int, int]]:
        """Return the virtual channels that stand still because a host pauses the channel to it.

        As in :class:`Deadlock`, in order: each is paused, and its ingress buffer holds more than
        XON of frames that wait for the host or for another of these channels.
        """
    def spray(self) -> None:
        """Have switches choose among several next hops for each frame anew.

        Otherwise all frames from one host to another take the same, by a hash of the seed.
        """
    def first_free(self) -> None:
        """Have each frame take, of several next hops, the first that is free and not paused.

        A frame waits for all of them at once and is bound to one when it begins to be sent. If
        several are free then, it takes the first in the order of the state. A switch that can
        deliver a frame delivers it. ValueError under credits, and if rules change meanwhile.
        """
    def use_bubbles(self, rings: list[tuple[int, int, int]], entry_units: int, apart: bool) -> None:
        """Have frames that enter a ring of virtual channels need at least so many units of credit.

        ``rings`` are (channel, priority, ring), rings counted from 1. With ``apart``, frames that
        enter a ring wait behind those that stay in it. Before the simulation runs. ValueError if a
        virtual channel needs no credit, the rules change, or switches have settings.
        """
    def choose_at_source(self, threshold: int) -> None:
        """Have the first switch of each frame choose between two of several next hops.

        One is the first in the order of the state, the direct path; the other is drawn by the
        switch's own random stream. It takes the direct path if the bytes in the queue of its
        output, times its hops between switches, are at most those of the other plus ``threshold``.
        ValueError if rules change meanwhile.
        """
    def hash_addresses(self, addresses: list[int], seed: int) -> None:
        """Have switches choose among several next hops as Open vSwitch does by compiled rules.

        See :func:`select_members`; ``addresses`` are those of the hosts. ValueError if there is not
        one for each host.
        """
    def record_completions(self, limit: int) -> None:
        """Keep the completions of at most ``limit`` messages, from the end of the warm-up on.

        The results are the same as without.
        """
    def completions(
        self,
    ) -> tuple[
        NDArray[np.uint32],
        NDArray[np.uint32],
        NDArray[np.uint64],
        NDArray[np.uint64],
        NDArray[np.uint64],
        NDArray[np.bool_],
        int,
    ]:
        """Return source, destination, bytes, start (ps), end (ps), and whether acknowledged.

        An entry for each message that was kept, in the order of their ends; then the number of
        messages beyond the limit.
        """
    def alone_ps(
        self,
        sources: NDArray[np.uint32],
        destinations: NDArray[np.uint32],
        message_bytes: NDArray[np.uint64],
        acknowledged: NDArray[np.bool_],
    ) -> NDArray[np.uint64]:
        """Return the time that each message takes if nothing else is in the network.

        It follows from the rates and delays of the lines on its path; switches store and forward.
        0 where there is no path, or in a fabric of hubs.
        """
    @property
    def now_ps(self) -> int: ...
    @property
    def events(self) -> int: ...
    def report(self) -> Report:
        """Return the counters so far."""
