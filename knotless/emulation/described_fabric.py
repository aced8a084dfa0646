"""Fabrics that are described in Mininet's words: nodes, links, and the parameters of both.

Pure functions. A parameter that an emulated fabric cannot honour is refused, in one line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from knotless.base.errors import EmulationError, FabricError
from knotless.base.suggestions import suggestion
from knotless.topologies.fabric import DEFAULT_DELAY_US, DEFAULT_RATE_MBPS, Fabric
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete

PACKET_BYTES = 1522
"""The longest frame of a host, with a VLAN tag: what a packet of ``max_queue_size`` takes."""
DEFAULT_PREFIX = 8
_UNITS_US = {
    **dict.fromkeys(("", "us", "usec", "usecs"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs"), 1e3),
    **dict.fromkeys(("s", "sec", "secs"), 1e6),
    **dict.fromkeys(("ns", "nsec", "nsecs"), 1e-3),
}
"""Units of times of tc(8); a number alone counts microseconds."""
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]*)")
LINE = ("bw", "delay", "jitter", "loss", "max_queue_size")
"""What Mininet's ``TCIntf`` says about a line, and changes at any time."""
_SHAPERS = ("use_hfsc", "use_htb", "use_tbf", "txo", "rxo", "gro", "fast")
"""How tc shapes, and offloads: here the emulator serves each link at its rate."""
_REFUSED_OF_LINKS = {
    "speedup": "a link has the same rate at both ends",
    "latency_ms": "max_queue_size limits the queue of a link without flow control",
    "enable_ecn": "the switches do not mark packets",
    "enable_red": "the switches do not drop packets early",
}
_REFUSED_OF_HOSTS = dict.fromkeys(
    ("cpu", "cores", "sched", "period_us", "rt_period_us"), "hosts share all processors"
)
_REFUSED_OF_SWITCHES = {
    "stp": "the routes of the plan use all links; spanning trees are for 'knotless export'",
    "inband": "the controller is reached outside of the fabric",
    "opts": "the fabric has an Open vSwitch of its own",
    "listenPort": "use 'dpctl' at the prompt, or ovs-ofctl on the switch",
    "prefixLen": "switches have no addresses",
}


@dataclass(frozen=True)
class Line:
    """Properties of a link: rate, one-way delay, and egress queues without flow control.

    ``loss`` is a share of frames, 0 to 1.
    """

    rate_mbps: float = DEFAULT_RATE_MBPS
    delay_us: float = DEFAULT_DELAY_US
    queue_bytes: int | None = None
    jitter_us: float = 0.0
    loss: float = 0.0


@dataclass(frozen=True)
class DescribedHost:
    """A host; ``mac`` None: its place numbers it."""

    name: str
    ip: str
    prefix: int = DEFAULT_PREFIX
    mac: str | None = None


@dataclass(frozen=True)
class Connection:
    """A link between two nodes, each at one of its ports."""

    a: str
    a_port: int
    b: str
    b_port: int
    line: Line


@dataclass(frozen=True)
class DescribedFabric:
    """The fabric, and what a :class:`~knotless.topologies.fabric.Fabric` does not say.

    ``queue_bytes`` is by the name of a link or host, ``prefixes`` by that of a host.
    """

    fabric: Fabric
    queue_bytes: Mapping[str, int]
    prefixes: Mapping[str, int]


def delay_us(value: object, where: str, key: str = "delay") -> float:
    """Return a delay, or what ``key`` names, as tc(8) reads it; raises EmulationError.

    Examples
    --------
    >>> delay_us("5ms", "link"), delay_us("250us", "link"), delay_us("10", "link")
    (5000.0, 250.0, 10.0)

    """
    match = _TIME.fullmatch(str(value).strip().lower())
    if match is None or match[2] not in _UNITS_US:
        raise EmulationError(f"{where}: {key}={str(value)[:40]!r} is no time; write 5ms or 100us")
    return float(match[1]) * _UNITS_US[match[2]]


def line_of(params: Mapping[str, Any], default: Line, where: str) -> Line:
    """Return the line of a link with Mininet's parameters.

    Raises EmulationError for a parameter that is unknown, or that cannot be honoured.
    """
    given = {key: value for key, value in params.items() if value is not None}
    _refuse(given, _REFUSED_OF_LINKS, (*LINE, *_SHAPERS), where)
    line = default
    if "bw" in given:
        line = replace(line, rate_mbps=_number(given["bw"], f"{where}: bw", "Mbit/s, such as 10"))
    if "delay" in given:
        line = replace(line, delay_us=delay_us(given["delay"], where))
    if "jitter" in given:
        line = replace(line, jitter_us=delay_us(given["jitter"], where, "jitter"))
    if "loss" in given:
        line = replace(line, loss=_loss(given["loss"], where))
    if "max_queue_size" in given:
        packets = _number(given["max_queue_size"], f"{where}: max_queue_size", "packets")
        if packets < 1 or packets != int(packets):
            raise EmulationError(f"{where}: max_queue_size is a number of packets, at least 1")
        line = replace(line, queue_bytes=int(packets) * PACKET_BYTES)
    return line


def host_of(name: str, params: Mapping[str, Any]) -> DescribedHost:
    """Return the host with Mininet's parameters; raises EmulationError as :func:`line_of`."""
    where = f"host {name}"
    taken = ("ip", "mac", "defaultRoute", "privateDirs", "inNamespace")
    _refuse(params, _REFUSED_OF_HOSTS, taken, where)
    if not params.get("inNamespace", True):
        raise EmulationError(f"{where}: inNamespace=False: each host has a network namespace")
    address, slash, prefix = str(params.get("ip") or "").partition("/")
    if slash and not (prefix.isascii() and prefix.isdigit() and int(prefix) <= 32):
        raise EmulationError(f"{where}: ip={params['ip']!r} has no prefix from 0 to 32")
    if not address:
        raise EmulationError(f"{where}: ip is missing; write it as 10.0.0.1/8")
    mac = params.get("mac")
    length = int(prefix) if slash else DEFAULT_PREFIX
    return DescribedHost(name, address, length, None if mac is None else str(mac))


def dpid_of(name: str, params: Mapping[str, Any]) -> int:
    """Return the dpid of a switch with Mininet's parameters: hexadecimal, or from its name.

    Raises EmulationError as :func:`line_of`.

    Examples
    --------
    >>> dpid_of("s12", {}), dpid_of("core", {"dpid": "00:00:00:00:00:00:00:ff"})
    (12, 255)

    """
    where = f"switch {name}"
    taken = ("dpid", "protocols", "failMode", "datapath", "batch", "reconnectms", "inNamespace")
    _refuse(params, _REFUSED_OF_SWITCHES, (*taken, "isSwitch", "ip"), where)
    if params.get("inNamespace"):
        raise EmulationError(f"{where}: inNamespace=True: all switches share one namespace")
    if params.get("failMode", "secure") != "secure":
        raise EmulationError(
            f"{where}: failMode={params['failMode']!r}: a switch without its controller keeps its"
            " rules (secure)"
        )
    protocols = params.get("protocols") or "OpenFlow13"
    named = protocols.split(",") if isinstance(protocols, str) else list(protocols)
    if "OpenFlow13" not in named:
        raise EmulationError(f"{where}: protocols={protocols!r}: switches speak OpenFlow13")
    if params.get("dpid"):
        digits = str(params["dpid"]).replace(":", "")
        if not re.fullmatch(r"[0-9A-Fa-f]{1,16}", digits):
            raise EmulationError(f"{where}: dpid={params['dpid']!r} is not up to 16 hex digits")
        return int(digits, 16)
    digit = re.search(r"[0-9]+", name)
    if digit is None:
        raise EmulationError(f"{where}: its name has no number: give its dpid, in hex")
    return int(digit[0])


def describe(
    name: str,
    switches: Mapping[str, int],
    hosts: Sequence[DescribedHost],
    connections: Sequence[Connection],
) -> DescribedFabric:
    """Return the fabric of described nodes and links.

    Parameters
    ----------
    name : str
        Its name.
    switches : mapping of str to int
        The dpid of each switch.
    hosts : sequence of DescribedHost
        Its hosts, each with one link to a switch.
    connections : sequence of Connection
        All links, in any direction.

    Returns
    -------
    DescribedFabric
        The fabric, its switches in the order of their dpids.

    Raises
    ------
    EmulationError
        A host has no link or more than one, or is linked to another host, or the fabric is
        inconsistent.

    """
    order = {switch: i for i, switch in enumerate(sorted(switches, key=lambda s: switches[s]))}
    by_name = {host.name: host for host in hosts}
    links: list[PartialLink] = []
    lines: dict[str, Line] = {}
    ends: dict[str, tuple[int, int]] = {}
    for one in connections:
        if one.a in by_name and one.b in by_name:
            raise EmulationError(
                f"link {one.a}-{one.b}: joins two hosts: link each of them to a switch"
            )
        if one.a in order and one.b in order:
            rate, delay = one.line.rate_mbps, one.line.delay_us
            jitter, loss = one.line.jitter_us, one.line.loss
            ends_of_link = (order[one.a], order[one.b], one.a_port, one.b_port)
            link = PartialLink(*ends_of_link, rate, delay, jitter, loss)
            links.append(link)
            lines[f"{one.a}:{one.a_port}-{one.b}:{one.b_port}"] = one.line
            continue
        host, own_port, switch, port = one.a, one.a_port, one.b, one.b_port
        if one.a in order:
            host, own_port, switch, port = one.b, one.b_port, one.a, one.a_port
        if host in ends:
            raise EmulationError(f"host {host}: has two links, and may have one")
        if own_port != 0:
            raise EmulationError(
                f"host {host}: its port {own_port}: the only port of a host is 0 ({host}-eth0)"
            )
        ends[host], lines[host] = (order[switch], port), one.line
    for host in by_name:
        if host not in ends:
            raise EmulationError(f"host {host}: has no link: link it to a switch")
    partial_hosts = [
        PartialHost(
            host.name,
            *ends[host.name],
            host.mac,
            host.ip,
            lines[host.name].rate_mbps,
            lines[host.name].delay_us,
            jitter_us=lines[host.name].jitter_us,
            loss=lines[host.name].loss,
        )
        for host in hosts
    ]
    partial_switches = [PartialSwitch(switch, switches[switch]) for switch in order]
    try:
        fabric = complete(name, partial_switches, partial_hosts, links)
    except FabricError as error:
        # A script has one kind of error to catch, whatever is wrong with what it describes.
        raise EmulationError(str(error)) from None
    queues = {name: line.queue_bytes for name, line in lines.items() if line.queue_bytes}
    return DescribedFabric(fabric, queues, {host.name: host.prefix for host in hosts})


def _refuse(
    params: Mapping[str, Any], refused: Mapping[str, str], taken: Collection[str], where: str
) -> None:
    """Raise EmulationError for the first parameter that is refused or unknown."""
    for key, value in params.items():
        if key in refused:
            if value not in (None, 0, 0.0, "", False, "0", "0%", -1):
                raise EmulationError(f"{where}: {key}={str(value)[:40]!r}: {refused[key]}")
        elif key not in taken:
            hint = suggestion(key, taken)
            raise EmulationError(f"{where}: there is no parameter {key[:40]!r}; {hint}")


def changes_of(params: Mapping[str, Any], where: str) -> dict[str, float]:
    """Return what parameters change of a running line, as the emulator names it.

    Raises EmulationError for a value that is impossible, or that only counts before it runs.

    Examples
    --------
    >>> changes_of({"bw": 5, "delay": "1ms", "loss": 1}, "s1-eth2")
    {'rate_mbps': 5.0, 'delay_us': 1000.0, 'loss': 0.01}

    """
    given = {key: value for key, value in params.items() if key in LINE and value is not None}
    if "max_queue_size" in given:
        raise EmulationError(f"{where}: max_queue_size: give it to addLink, before net.start()")
    line = line_of(given, Line(), where)
    values = {
        "bw": ("rate_mbps", line.rate_mbps),
        "delay": ("delay_us", line.delay_us),
        "jitter": ("jitter_us", line.jitter_us),
        "loss": ("loss", line.loss),
    }
    return dict(values[key] for key in given)


def _loss(value: Any, where: str) -> float:
    """Return the share of frames of Mininet's ``loss``, which is in percent."""
    percent = _number(str(value).removesuffix("%"), f"{where}: loss", "percent, such as 1")
    if not 0 <= percent <= 100:
        raise EmulationError(f"{where}: loss must be 0 to 100 percent, not {percent:g}")
    return percent / 100


def _number(value: Any, where: str, unit: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise EmulationError(f"{where} must be a number ({unit}), not {value!r}") from None
