"""Validation of fabrics; the first error is reported as one line."""

from __future__ import annotations

import ipaddress
import math
import re
import unicodedata
from collections.abc import Iterator
from math import prod

from knotless.base.errors import FabricError
from knotless.topologies.fabric import Fabric, Host, Link
from knotless.topologies.numbering import MAX_PORT, mac_value

MAX_RATE_MBPS = 1_000_000.0
MAX_DELAY_US = 10_000_000.0
MAX_DPID = 2**64 - 1
MAX_HUB_RATE_MBPS = 100.0
HUB_SLOT_BITS = 512
"""Slot time of half-duplex Ethernet at 10 and 100 Mbit/s: IEEE 802.3, 4.4.2."""
_HOST_BITS = 0xFFFFFF
LONGEST_NAME = 63
"""Characters of the name of a switch or host."""
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{LONGEST_NAME - 1}}}")
_NAME_RULE = "1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit"
_OTHER = re.compile(r"[^A-Za-z0-9_.-]+")
_UNDECOMPOSED = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "Ae", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d"}
)
"""Latin letters that Unicode does not compose of a plain letter and a mark."""
_MAC = re.compile(r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}")


def validate(fabric: Fabric, *, whole: bool = True, united: bool = False) -> None:
    """Raise FabricError if a fabric is inconsistent.

    Names must be usable as file names and be distinct over switches and hosts together, because
    a channel is named after the switch or host that it leaves. Dpids, MACs and IPs must be
    distinct, every port may be used once, and rates and delays must be in their ranges.

    Parameters
    ----------
    fabric : Fabric
        The fabric to check.
    whole : bool
        Whether it must be connected and have a host.
    united : bool
        Whether it is a union (:mod:`knotless.topologies.union`), whose hosts may have the same IP,
        if one of them goes away.

    Raises
    ------
    FabricError
        The first mistake, in one line.

    """
    if not fabric.switches:
        raise FabricError("a fabric needs at least one switch")
    if whole and not fabric.hosts:
        raise FabricError("a fabric needs at least one host")
    if fabric.is_numbered:
        lines: tuple[Host | Link, ...] = (*fabric.hosts[:1], *fabric.links[:1])
        for line in lines:
            _check_line(fabric.name, line)
    else:
        _check_parts(fabric, united=united)
    _check_grid(fabric)
    if whole:
        _check_connected(fabric)
    _check_hub(fabric)


def _check_parts(fabric: Fabric, *, united: bool) -> None:
    _check_names(fabric)
    _check_dpids(fabric)
    for host in fabric.hosts:
        _check_host(fabric, host)
    _check_addresses(fabric, united=united)
    for link in fabric.links:
        _check_link(fabric, link)
    _check_ports(fabric)


def is_name(text: str) -> bool:
    """Tell whether ``text`` is a valid name of a switch or host."""
    return _NAME.fullmatch(text) is not None


def folded(label: str) -> str:
    """Return the valid name that is nearest to a label, empty if there is none.

    Letters lose their marks, all else that no name may have becomes ``_``.

    Examples
    --------
    >>> folded("São Paulo (BR)"), folded("Łódź"), folded("東京")
    ('Sao_Paulo_BR', 'Lodz', '')

    """
    if is_name(label):
        return label
    letters = unicodedata.normalize("NFKD", label.translate(_UNDECOMPOSED))
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return _OTHER.sub("_", plain).strip("_.-")[:LONGEST_NAME]


def is_host_address(address: ipaddress.IPv4Address) -> bool:
    """Tell whether a host can have ``address``.

    It must be unicast, and not the broadcast address of all hosts with the same first byte, which
    are configured as one network (RFC 1122, 3.2.1.3).
    """
    if address.is_multicast or address.is_loopback or address.is_unspecified:
        return False
    return int(address) & _HOST_BITS != _HOST_BITS


def _check_names(fabric: Fabric) -> None:
    seen: set[str] = set()
    for name in [s.name for s in fabric.switches] + [h.name for h in fabric.hosts]:
        if not is_name(name):
            near = folded(name[: 2 * LONGEST_NAME])
            such = f", such as {near}" if near else ""
            raise FabricError(f"name {name!r} must be {_NAME_RULE}{such}")
        if name in seen:
            raise FabricError(f"the name {name} is used twice; switches and hosts share one set")
        seen.add(name)


def _check_dpids(fabric: Fabric) -> None:
    seen: dict[int, str] = {}
    for switch in fabric.switches:
        if not 1 <= switch.dpid <= MAX_DPID:
            raise FabricError(f"switch {switch.name}: dpid must be 1 to 2^64-1, not {switch.dpid}")
        if switch.dpid in seen:
            raise FabricError(
                f"switch {switch.name}: dpid {switch.dpid} is already used by {seen[switch.dpid]}"
            )
        seen[switch.dpid] = switch.name


def _check_host(fabric: Fabric, host: Host) -> None:
    if host.switch not in fabric.switch_index:
        raise FabricError(f"host {host.name}: there is no switch {host.switch!r}")
    if not _MAC.fullmatch(host.mac):
        raise FabricError(
            f"host {host.name}: {host.mac!r} is not a MAC; write it as 02:00:00:00:01:01"
        )
    if mac_value(host.mac) == 0 or mac_value(host.mac) >> 40 & 1:
        raise FabricError(
            f"host {host.name}: MAC {host.mac} must not be zero or a multicast address"
        )
    try:
        address = ipaddress.IPv4Address(host.ip)
    except ValueError:
        raise FabricError(
            f"host {host.name}: {host.ip!r} is not an IPv4 address; write it as 10.0.1.1"
        ) from None
    if not is_host_address(address):
        raise FabricError(
            f"host {host.name}: {host.ip} is not the address of a host: it is not unicast, or"
            " broadcast; write one such as 10.0.1.1"
        )
    if host.server is not None and not is_name(host.server):
        raise FabricError(f"host {host.name}: server {host.server!r} must be {_NAME_RULE}")
    _check_line(f"host {host.name}", host)


def _check_addresses(fabric: Fabric, *, united: bool) -> None:
    macs: dict[int, str] = {}
    ips: dict[str, str] = {}
    for host in fabric.hosts:
        mac = mac_value(host.mac)
        if mac in macs:
            raise FabricError(f"host {host.name}: MAC {host.mac} is already used by {macs[mac]}")
        if host.ip in ips and not united:
            raise FabricError(f"host {host.name}: IP {host.ip} is already used by {ips[host.ip]}")
        macs[mac] = host.name
        ips[host.ip] = host.name


def _check_link(fabric: Fabric, link: Link) -> None:
    where = f"link {link.name}"
    for name in (link.a, link.b):
        if name not in fabric.switch_index:
            raise FabricError(f"{where}: there is no switch {name!r}")
    if link.a == link.b:
        raise FabricError(f"{where}: connects a switch to itself")
    _check_line(where, link)


def _check_line(where: str, line: Host | Link) -> None:
    rate_mbps = line.rate_mbps
    if not (math.isfinite(rate_mbps) and 0 < rate_mbps <= MAX_RATE_MBPS):
        raise FabricError(
            f"{where}: rate_mbps must be above 0 and at most {MAX_RATE_MBPS:.0f}, not {rate_mbps:g}"
        )
    for key, time_us in (("delay_us", line.delay_us), ("jitter_us", line.jitter_us)):
        if not (math.isfinite(time_us) and 0 <= time_us <= MAX_DELAY_US):
            raise FabricError(f"{where}: {key} must be 0 to {MAX_DELAY_US:.0f}, not {time_us:g}")
    if not 0 <= line.loss <= 1:
        raise FabricError(
            f"{where}: loss must be a share of frames from 0 to 1, such as 0.01, not {line.loss:g}"
        )


def _ends(fabric: Fabric) -> Iterator[tuple[str, int, str]]:
    """Yield (switch, port, description of the link or host on it)."""
    for host in fabric.hosts:
        yield host.switch, host.port, f"host {host.name}"
    for link in fabric.links:
        where = f"link {link.name}"
        yield link.a, link.a_port, where
        yield link.b, link.b_port, where


def _check_ports(fabric: Fabric) -> None:
    seen: dict[tuple[str, int], str] = {}
    for switch, port, what in _ends(fabric):
        if not 1 <= port <= MAX_PORT:
            raise FabricError(f"{what}: a port must be 1 to {MAX_PORT}, not {port}")
        if (switch, port) in seen:
            raise FabricError(
                f"{what}: port {port} of {switch} is already used by {seen[switch, port]}"
            )
        seen[switch, port] = what


def _check_grid(fabric: Fabric) -> None:
    if fabric.grid is None:
        return
    dims = fabric.grid.dims
    if not dims or min(dims) < 1 or prod(dims) != len(fabric.switches):
        shape = "x".join(map(str, dims)) or "empty"
        raise FabricError(
            f"grid {shape} does not match the fabric's {len(fabric.switches)} switches"
        )


def _check_hub(fabric: Fabric) -> None:
    hubs = [switch.name for switch in fabric.switches if switch.hub]
    if not hubs:
        return
    if len(fabric.switches) > 1:
        raise FabricError(f"{hubs[0]}: a hub connects only hosts, not switches")
    for host in fabric.hosts:
        if host.rate_mbps != fabric.hosts[0].rate_mbps or host.rate_mbps > MAX_HUB_RATE_MBPS:
            raise FabricError(
                f"host {host.name}: all links of a hub have the same rate, at most"
                f" {MAX_HUB_RATE_MBPS:g} Mbit/s, not {host.rate_mbps:g}"
            )
    slot_us = HUB_SLOT_BITS / fabric.hosts[0].rate_mbps
    longest = sorted((host.delay_us for host in fabric.hosts), reverse=True)[:2]
    if 2 * sum(longest) > slot_us:
        raise FabricError(
            f"{hubs[0]}: the round-trip time between hosts, {2 * sum(longest):g} us, exceeds the"
            f" slot time in which collisions are detected, {slot_us:g} us; set a delay of"
            f" {slot_us / 4:g} us at most"
        )


def _check_connected(fabric: Fabric) -> None:
    first = fabric.switches[0].name
    reached = {first}
    frontier = [first]
    while frontier:
        for neighbour, _ in fabric.neighbours[frontier.pop()].values():
            if neighbour not in reached:
                reached.add(neighbour)
                frontier.append(neighbour)
    for switch in fabric.switches:
        if switch.name not in reached:
            raise FabricError(f"switch {switch.name} cannot be reached from {first}; link them")
