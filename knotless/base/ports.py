"""TCP ports of this machine: whether one is free, and the address family of a host."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path

_CLIENTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_CHOSEN = range(20_000, 65_536)
_TRIES = 100
_given: set[int] = set()
"""Ports that were free: whoever asked may not listen yet."""


def address_family(host: str) -> socket.AddressFamily:
    """Return the family of an address or name: IPv6 if it is an IPv6 address, else IPv4."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def free_port(port: int = 0, host: str = "127.0.0.1") -> int:
    """Return ``port`` if nobody listens on it; for 0, any free port.

    That is one which the kernel gives to no client: until the caller listens, a client could get
    it, even one that tries to connect to it. Neither is it one that was returned before. Raises
    OSError if ``port`` is in use, or if ``host`` is no address of this machine.
    """
    port = _listened(port, host) if port else _chosen(host)
    _given.add(port)
    return port


def _chosen(host: str) -> int:
    clients = _ports_of_clients()
    others = [number for number in _CHOSEN if number not in clients and number not in _given]
    for number in random.SystemRandom().sample(others, min(_TRIES, len(others))):
        with suppress(OSError):
            return _listened(number, host)
    return _listened(0, host)


def _listened(port: int, host: str) -> int:
    """Listen for a moment, and return the port."""
    with socket.socket(address_family(host), socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        probe.listen(1)
        bound_port: int = probe.getsockname()[1]
    return bound_port


def _ports_of_clients() -> range:
    """Return the ports of which the kernel gives one to each client."""
    first, last = map(int, _CLIENTS.read_text(encoding="ascii").split())
    return range(first, last + 1)
