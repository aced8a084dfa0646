"""The forwarder from a switch's Unix socket to a controller's TCP port."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import REPOSITORY


@pytest.fixture(params=["127.0.0.1", "127.0.0.2"])
def controller(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    with socket.create_server((request.param, 0)) as listener:
        listener.settimeout(10)
        yield listener


@pytest.fixture
def path(controller: socket.socket, tmp_path: Path) -> Iterator[Path]:
    socket_path = tmp_path / "controller.sock"
    address, port = controller.getsockname()
    where = str(port) if address == "127.0.0.1" else f"{address}:{port}"
    with subprocess.Popen(
        [sys.executable, "-m", "knotless.emulation.forwarder", str(socket_path), where],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        yield socket_path
        child.terminate()
        assert child.wait(10) == 0


def switch(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    connection.connect(str(path))
    return connection


def test_bytes_go_both_ways_on_each_connection_alone(controller: socket.socket, path: Path) -> None:
    with (
        switch(path) as first,
        controller.accept()[0] as far_first,
        switch(path) as second,
        controller.accept()[0] as far_second,
    ):
        first.sendall(b"hello of 1")
        second.sendall(b"hello of 2")
        assert far_second.recv(100) == b"hello of 2"
        assert far_first.recv(100) == b"hello of 1"
        far_second.sendall(b"x" * 300_000)
        with second.makefile("rb") as reader:
            assert len(reader.read(300_000)) == 300_000


def test_each_side_learns_of_the_others_end(controller: socket.socket, path: Path) -> None:
    with switch(path) as near, controller.accept()[0] as remote:
        remote.close()
        assert near.recv(1) == b""
    with switch(path) as near, controller.accept()[0] as remote:
        near.close()
        assert remote.recv(1) == b""


def test_without_a_listener_the_connection_is_closed_and_the_switch_may_retry(
    controller: socket.socket, path: Path
) -> None:
    address = controller.getsockname()
    controller.close()
    with switch(path) as near:
        assert near.recv(1) == b""
    with socket.create_server(address) as again:
        again.settimeout(10)
        with switch(path) as near, again.accept()[0] as remote:
            near.sendall(b"!")
            assert remote.recv(1) == b"!"


def test_the_socket_is_its_owners_alone(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600
