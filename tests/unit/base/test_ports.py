"""Free ports of this machine."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest

from knotless.base.ports import free_port


def test_a_port_on_which_somebody_listens_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(OSError) as raised:  # noqa: PT011 - its number is asserted
            free_port(port)
        assert raised.value.errno == errno.EADDRINUSE
        assert free_port() != port


def test_a_free_port_can_be_used_at_once() -> None:
    port = free_port()
    assert free_port(port) == port
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_no_client_gets_a_port_that_was_free() -> None:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    ports = [free_port() for _ in range(200)]
    assert len(set(ports)) == 200, "who was given a port may not listen yet"
    assert not [port for port in ports if first <= port <= last]


def test_where_clients_may_have_all_ports_one_of_theirs_is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("knotless.base.ports._ports_of_clients", lambda: range(1024, 65536))
    port = free_port()
    assert free_port(port) == port
