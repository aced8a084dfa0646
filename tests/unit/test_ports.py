"""Whether a port of this machine is free."""

from __future__ import annotations

import errno
import socket

import pytest

from common.ports import free_port


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
