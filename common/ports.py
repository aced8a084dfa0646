"""TCP ports of this machine: whether one is free, and the address family of a host."""

from __future__ import annotations

import socket


def address_family(host: str) -> socket.AddressFamily:
    """Return the family of an address or name: IPv6 if it is an IPv6 address, else IPv4."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def free_port(port: int = 0, host: str = "127.0.0.1") -> int:
    """Return ``port`` if nobody listens on it; for 0, any free port.

    Raises OSError if it is in use, or if ``host`` is no address of this machine.
    """
    with socket.socket(address_family(host), socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        probe.listen(1)
        found: int = probe.getsockname()[1]
    return found
