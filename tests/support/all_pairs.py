"""UDP between all hosts, from sockets that one process opens in their namespaces."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Mapping

from knotless.emulation.names import NETNS_DIRECTORY
from knotless.emulation.namespaces import inside
from tests.support.waiting import Limit

PORT = 5005


def socket_in(namespace: str) -> socket.socket:
    """Return a UDP socket in the network namespace of that name, bound to :data:`PORT`."""
    with inside(str(NETNS_DIRECTORY / namespace)):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("", PORT))
    sock.setblocking(False)
    return sock


def missing_pairs(
    namespaces: Mapping[str, str], addresses: Mapping[str, str], limit_s: float
) -> set[tuple[str, str]]:
    """Send between all pairs of hosts until all have received; return the pairs that have not.

    ``namespaces`` and ``addresses`` are by host. What is under way is asked for again each
    second: hosts must first learn each other's MAC, and a switch may be slow at first.
    """
    sockets = {host: socket_in(namespace) for host, namespace in namespaces.items()}
    owner = {sock.fileno(): host for host, sock in sockets.items()}
    host_at = {address: host for host, address in addresses.items()}
    missing = {(a, b) for a in sockets for b in sockets if a != b}
    limit = Limit(limit_s)
    again = 0.0
    try:
        while missing and not limit.is_over:
            if time.monotonic() >= again:
                for a, b in sorted(missing):
                    sockets[a].sendto(f"{a}>{b}".encode(), (addresses[b], PORT))
                again = time.monotonic() + 1
            for ready in select.select(list(sockets.values()), [], [], 0.1)[0]:
                data, (address, _) = ready.recvfrom(2048)
                pair = host_at[address], owner[ready.fileno()]
                assert data == f"{pair[0]}>{pair[1]}".encode(), f"{data!r} came to {pair}"
                missing.discard(pair)
    finally:
        for sock in sockets.values():
            sock.close()
    return missing
