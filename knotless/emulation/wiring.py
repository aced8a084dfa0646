"""The interface of each port of a fabric, and the configuration of the link emulator.

Pure functions. An emulated link is two veth pairs with the emulator between them. A plain link is
one veth pair, as in Mininet.

                switches' namespace    links' namespace    host's namespace
    s1 -- s2    s1-eth2 ........ k0    k0, k1
                s2-eth3 ........ k1
    h1 -- s1                           k2, k3 ............ h1-eth0 (with k2)
                s1-eth1 ........ k3
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from knotless.base.errors import EmulationError, FabricError
from knotless.base.flow_control import FlowControl, LinkFlowControl
from knotless.emulation.interface_names import interface, interface_names
from knotless.emulation.names import Names
from knotless.emulation.namespaces import INTERFACE_GROUP
from knotless.topologies.fabric import Fabric, Host

HOST_MTU = 1500
INNER_MTU = 1600
"""Bytes after the Ethernet header between switch and emulator: the payload of a host's longest
frame, a VLAN tag and the emulator's trailer (16 bytes)."""
FIRST_INDEX = 1 << 16
"""Interface index of the first of the emulator's ends. The kernel reports a loss of carrier at
once only if both ends of a pair have different indices, even in different namespaces; otherwise
up to a second later (linkwatch_urgent_event)."""
SHORTEST_TICK_US = 200
LONGEST_TICK_US = 1000
NFQUEUE = 1
"""Queue numbers are per network namespace, so all hosts can use the same one."""
HostTags = Mapping[str, Mapping[str, int]]
"""Host -> {destination MAC: VLAN}; ``default`` is the VLAN of all other destinations."""


@dataclass(frozen=True)
class End:
    """One end of a cable: the port of a switch, or the interface of a host (``port`` 0).

    ``interface`` is on the side of the switch or host, ``inner`` on that of the emulator.
    ``process`` is the number of the Open vSwitch process that has the switch.
    """

    owner: str
    port: int
    interface: str
    inner: str
    host: Host | None = None
    process: int = 0


@dataclass(frozen=True)
class Cable:
    """A link between switches, or the link of a host (which is then end ``a``)."""

    name: str
    a: End
    b: End
    rate_mbps: float
    delay_us: float
    jitter_us: float = 0.0
    loss: float = 0.0

    @property
    def faults(self) -> dict[str, float]:
        """Its random faults (loss, jitter), as the emulator reads them."""
        values = {"jitter_us": self.jitter_us, "loss": self.loss}
        return {key: value for key, value in values.items() if value}

    @property
    def ends(self) -> tuple[End, End]:
        """Both ends."""
        return (self.a, self.b)


def wire(fabric: Fabric) -> tuple[Cable, ...]:
    """Name every interface of a fabric: links first, then hosts, in the fabric's order.

    Raises :class:`EmulationError` for a name of two nodes, and for a hub.
    """
    names = interface_names(fabric)
    try:
        fabric.refuse_hub("emulated")
    except FabricError as error:
        raise EmulationError(str(error)) from None
    inner = (f"k{i}" for i in range(2 * (len(fabric.links) + len(fabric.hosts))))

    def end(owner: str, port: int, host: Host | None = None) -> End:
        return End(owner, port, interface(names[owner], port), next(inner), host)

    return tuple(
        Cable(
            link.name,
            end(link.a, link.a_port),
            end(link.b, link.b_port),
            link.rate_mbps,
            link.delay_us,
            link.jitter_us,
            link.loss,
        )
        for link in fabric.links
    ) + tuple(
        Cable(
            host.name,
            end(host.name, 0, host),
            end(host.switch, host.port),
            host.rate_mbps,
            host.delay_us,
            host.jitter_us,
            host.loss,
        )
        for host in fabric.hosts
    )


def divided(cables: Sequence[Cable], processes: int) -> tuple[Cable, ...]:
    """Divide the switches, in order, among at most so many Open vSwitch processes.

    Each gets about the same number of ports, and a switch at least.
    """
    of_switch = ports(cables)
    each = sum(map(len, of_switch.values())) / processes
    process, last, taken = {}, 0, 0
    for switch, by_port in of_switch.items():
        process[switch] = last
        taken += len(by_port)
        last += taken >= (last + 1) * each

    def placed(end: End) -> End:
        return replace(end, process=process.get(end.owner, 0))

    return tuple(replace(one, a=placed(one.a), b=placed(one.b)) for one in cables)


def switches_namespaces(cables: Sequence[Cable], names: Names) -> list[str]:
    """Return the network namespace of each Open vSwitch process."""
    last = max(process_of_switches(cables).values(), default=0)
    return [names.switches_namespace(process) for process in range(last + 1)]


def process_of_switches(cables: Sequence[Cable]) -> dict[str, int]:
    """Switch -> the number of its Open vSwitch process."""
    return {end.owner: end.process for one in cables for end in one.ends if end.host is None}


def prefix_length(fabric: Fabric) -> int:
    """Return the length of the IP prefix of all hosts: 8 for our fabrics.

    Hosts of a fabric from a file may have any addresses; then the length is 0.
    """
    return 8 if len({host.ip.split(".")[0] for host in fabric.hosts}) == 1 else 0


def ports(cables: Sequence[Cable]) -> dict[str, dict[int, str]]:
    """Switch -> {its port: the interface}, ports in ascending order."""
    by_switch: dict[str, dict[int, str]] = {}
    for cable in cables:
        for end in cable.ends:
            if end.host is None:
                by_switch.setdefault(end.owner, {})[end.port] = end.interface
    return {owner: dict(sorted(by_port.items())) for owner, by_port in by_switch.items()}


def emulated_pairs(cables: Sequence[Cable], names: Names) -> Iterator[str]:
    """Yield commands for ``ip -batch``, in the links' namespace, that create and open all pairs.

    The emulator's ends towards hosts come last: it tells them apart by ranges of indices.
    """
    ends = sorted(
        (end for cable in cables for end in cable.ends), key=lambda end: end.host is not None
    )
    for index, end in enumerate(ends, FIRST_INDEX):
        yield (
            f"link add {end.inner} index {index} group {INTERFACE_GROUP} mtu {INNER_MTU} type veth "
            f"peer name {end.interface} {_placed(end, names, INNER_MTU)}"
        )
        yield f"link set {end.inner} up"


def plain_pairs(cables: Sequence[Cable], names: Names) -> Iterator[str]:
    """Yield commands for ``ip -batch``, in the switches' namespace, for plain links."""
    for cable in cables:
        yield (
            f"link add {cable.b.interface} group {INTERFACE_GROUP} type veth "
            f"peer name {cable.a.interface} {_placed(cable.a, names, HOST_MTU)}"
        )


def switch_ends(cables: Sequence[Cable]) -> dict[int, list[str]]:
    """Return commands for ``ip -batch`` that open switch ports, by Open vSwitch process."""
    commands: dict[int, list[str]] = {}
    for end in (end for cable in cables for end in cable.ends if end.host is None):
        commands.setdefault(end.process, []).append(f"link set {end.interface} up")
    return commands


def _placed(end: End, names: Names, inner_mtu: int) -> str:
    """Return the rest of a ``link add``: MTU, address and namespace of a switch's or host's end."""
    if end.host is None:
        return f"mtu {inner_mtu} netns {names.switches_namespace(end.process)}"
    return f"mtu {HOST_MTU} address {end.host.mac} netns {names.host_namespace(end.owner)}"


def link_flow_control(cable: Cable, flow_control: FlowControl) -> LinkFlowControl:
    """Return the flow control of one link."""
    return flow_control.switch_links if cable.a.host is None else flow_control.host_links


def tick_us(cables: Sequence[Cable]) -> int:
    """Return the interval between wake-ups: as long as the shortest link delay allows.

    Open vSwitch polls every port on each wake-up, so rarer wake-ups, with more frames each, carry
    more traffic.
    """
    shortest = min((cable.delay_us for cable in cables), default=0.0)
    return round(min(LONGEST_TICK_US, max(SHORTEST_TICK_US, shortest / 5)))


def emulator_config(
    cables: Sequence[Cable],
    names: Names,
    *,
    flow_control: FlowControl,
    buffer: Mapping[str, int] | None = None,
    queue_bytes: Mapping[str, int] | None = None,
    watchdog: Mapping[str, Any] | None = None,
    pause_share: float | None = None,
    broadcast_limit: Mapping[str, float] | None = None,
    line_errors: tuple[float, int] = (0.0, 1),
    settings: Mapping[str, Any] | None = None,
    tags: HostTags | None = None,
) -> dict[str, Any]:
    """Return the emulator's configuration (docs/emulator-protocol.md).

    ``buffer`` holds the buffer keys of that page, for all links; ``queue_bytes`` the size of the
    egress queues of single links, by their name; ``watchdog`` the keys of a watchdog;
    ``pause_share`` is the share of time for which a host may pause its link, if it is not the
    emulator's default; ``broadcast_limit`` has the keys of the limit of hosts' broadcasts;
    ``line_errors`` are the bit error rate of all lines, and how many frames in a row have errors;
    ``settings`` holds the page's top-level settings, such as ``tick_us``; ``tags`` the VLAN tags of
    hosts.
    """

    def side(end: End) -> dict[str, Any]:
        if end.host is None:
            return {"switch": end.owner, "port": end.port, "interface": end.inner}
        return {
            "host": end.owner,
            "interface": end.inner,
            "host_namespace": f"/run/netns/{names.host_namespace(end.owner)}",
            "host_interface": end.interface,
            "nfqueue": NFQUEUE,
            **({"vlans": dict(tags[end.owner])} if tags else {}),
        }

    rate, in_a_row = line_errors
    errors = {"line_errors": rate, "errors_in_a_row": in_a_row} if rate else {}

    def limits(cable: Cable) -> dict[str, int]:
        own = (queue_bytes or {}).get(cable.name)
        return {**(buffer or {}), **({} if own is None else {"queue_bytes": own})}

    return {
        "namespace": f"/run/netns/{names.links_namespace}",
        "tick_us": tick_us(cables),
        **(settings or {}),
        "links": [
            {
                "name": cable.name,
                "a": side(cable.a),
                "b": side(cable.b),
                "rate_mbps": cable.rate_mbps,
                "delay_us": cable.delay_us,
                **({"faults": cable.faults | errors} if cable.faults or errors else {}),
                "flow_control": link_flow_control(cable, flow_control).name,
                **({"buffer": limits(cable)} if limits(cable) else {}),
                **(watchdog or {}),
                **({} if pause_share is None else {"pause_limit": {"share": pause_share}}),
                **({"broadcast_limit": dict(broadcast_limit)} if broadcast_limit else {}),
            }
            for cable in cables
        ],
    }
