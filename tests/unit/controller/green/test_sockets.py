"""Sockets that let others run while they wait, with TLS and without."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from knotless.controller import runtime
from knotless.controller.green.sockets import Socket, TlsSocket
from knotless.emulation import certificate_authority
from knotless.emulation.certificates import Certificates, Pair
from tests.support.waiting import HANG_S

pytestmark = pytest.mark.usefixtures("each_hub")
DATA = bytes(range(256)) * (1 << 14)
"""More than the buffers of a connection take."""


def pair() -> tuple[Socket, Socket]:
    one, other = socket.socketpair()
    return Socket(one), Socket(other)


def received(connection: Socket | TlsSocket) -> bytes:
    data = b""
    while part := connection.recv(1 << 16):
        data += part
    return data


def test_both_directions_carry_more_than_their_buffers() -> None:
    one, other = pair()
    with one, other, runtime.time_limit(HANG_S):
        senders = [runtime.spawn(each.sendall, DATA) for each in (one, other)]
        for sender, each in zip(senders, (one, other), strict=True):
            sender.link(lambda _thread, each=each: runtime.end_sending(each))
        assert runtime.together(received, [one, other]) == [DATA, DATA]


def test_calls_give_up_in_time_and_can_be_repeated() -> None:
    one, other = pair()
    with one, other:
        one.settimeout(0.001)
        with pytest.raises(TimeoutError):
            one.recv(1)
        with pytest.raises(TimeoutError):
            one.sendall(DATA)
        other.sendall(b"later")
        assert one.recv(3) == b"lat"
        assert one.recv(3) == b"er"


def test_whoever_waits_for_a_socket_that_is_closed_gets_an_error() -> None:
    one, other = pair()
    codes: list[int | None] = []

    def call(function: Callable[..., object], *args: object) -> None:
        try:
            function(*args)
        except OSError as error:
            codes.append(error.errno)

    threads = [runtime.spawn(call, one.recv, 1), runtime.spawn(call, one.sendall, DATA)]
    runtime.sleep(0)
    descriptor = one.fileno()
    one.close()
    new, peer = pair()  # takes the number of the descriptor over
    assert descriptor in (new.fileno(), peer.fileno())
    reading = runtime.spawn(new.recv, 1)
    runtime.sleep(0)
    peer.sendall(b"!")
    with runtime.time_limit(60):
        runtime.join(threads)
        assert reading.wait() == b"!"
    assert codes == [errno.EBADF, errno.EBADF]
    for each in (other, new, peer):
        each.close()


def test_a_full_unix_socket_is_connected_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with runtime.listen(path, 0) as server, runtime.time_limit(HANG_S):
        clients = [Socket(socket.socket(socket.AF_UNIX)) for _ in range(3)]
        threads = [runtime.spawn(client.connect, str(path)) for client in clients]
        runtime.sleep(0)
        assert not all(thread.dead for thread in threads)
        for _ in clients:
            server.accept()[0].close()
        runtime.join(threads)
        for client in clients:
            assert client.recv(1) == b""
            client.close()


def test_a_line_is_read_in_pieces_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "socket"

    def answer() -> None:
        for text in (b"a|bc\n", b"no end", b"long\n"):
            connection, _ = server.accept()
            with connection:
                connection.recv(10)
                for part in text.split(b"|"):
                    connection.sendall(part)
                    runtime.sleep(0.001)

    with runtime.listen(path, 5) as server:
        thread = runtime.spawn(answer)
        assert runtime.ask_line(path, b"?\n", HANG_S, 100) == b"abc\n"
        assert runtime.ask_line(path, b"?\n", HANG_S, 100) == b"no end"
        assert runtime.ask_line(path, b"?\n", HANG_S, 2) == b"lo"
        runtime.join([thread])
        with pytest.raises(TimeoutError):
            runtime.ask_line(path, b"?\n", 0.01, 100)


# --- TLS ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificate_authority.create(tmp_path_factory.mktemp("ours") / "tls")


def secured(own: Certificates) -> tuple[TlsSocket, socket.socket]:
    """Return the controller's side of a connection, before its handshake, and the other side."""
    context: Any = runtime.tls_server()
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(own.controller.certificate, own.controller.key)
    context.load_verify_locations(own.authority)
    one, other = socket.socketpair()
    other.settimeout(HANG_S)
    return context.wrap_socket(Socket(one), server_side=True), other


def client(own: Certificates, plain: socket.socket, shown: Pair | None) -> ssl.SSLSocket:
    """Greet as a switch; blocks."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(own.authority)
    if shown is not None:
        context.load_cert_chain(shown.certificate, shown.key)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def exchange(own: Certificates, plain: socket.socket, data: bytes) -> bytes:
    """Send data as a switch does, with a clean end, and return what comes."""
    with client(own, plain, own.switches) as connection:
        first = connection.recv(4)
        connection.sendall(data)
        while len(first) < len(data):
            first += connection.recv(1 << 16)
        connection.setblocking(False)
        with suppress(ssl.SSLWantReadError):  # it does not wait for an answer
            connection.unwrap()
    return first


def test_a_connection_in_tls_carries_data_both_ways(own: Certificates) -> None:
    server, plain = secured(own)

    def serve() -> bytes:
        server.do_handshake()
        sending = runtime.spawn(server.sendall, DATA)
        data = received(server)
        runtime.join([sending])
        return data

    serving = runtime.spawn(serve)
    with runtime.time_limit(HANG_S):
        assert runtime.in_thread(exchange, own, plain, DATA) == DATA
        assert serving.wait() == DATA
    server.close()


def test_an_end_without_farewell_is_an_end(own: Certificates) -> None:
    server, plain = secured(own)

    def leave() -> ssl.SSLSocket:
        connection = client(own, plain, own.switches)
        connection.sendall(b"bye")
        connection.shutdown(socket.SHUT_WR)
        return connection

    def serve() -> bytes:
        server.do_handshake()
        return received(server)

    serving = runtime.spawn(serve)
    with runtime.time_limit(HANG_S):
        connection = runtime.in_thread(leave)
        assert serving.wait() == b"bye"
        connection.close()
    server.close()


def failed(handshake: Callable[[], Any]) -> str:
    try:
        handshake()
    except ssl.SSLError as error:
        return type(error).__name__ + " " + (error.reason or "")
    return ""


def test_both_sides_learn_why_a_handshake_fails(own: Certificates) -> None:
    server, plain = secured(own)

    def greet() -> str:
        connection = client(own, plain, None)
        why = failed(lambda: connection.recv(1))
        connection.close()
        return why

    serving = runtime.spawn(failed, server.do_handshake)
    with runtime.time_limit(HANG_S):
        assert "CERTIFICATE_REQUIRED" in runtime.in_thread(greet)
        assert serving.wait() == "SSLError PEER_DID_NOT_RETURN_A_CERTIFICATE"
    server.close()


def test_who_says_nothing_or_nonsense_has_no_handshake(own: Certificates) -> None:
    server, plain = secured(own)
    plain.close()
    with pytest.raises(ConnectionError, match="the connection ended"):
        server.do_handshake()
    server.close()
    server, plain = secured(own)
    plain.sendall(b"GET / HTTP/1.1\r\n")
    assert failed(server.do_handshake) == "SSLError HTTP_REQUEST"
    server.close()
    plain.close()


def test_a_connection_in_tls_gives_up_in_time(own: Certificates) -> None:
    server, plain = secured(own)
    server.settimeout(0.001)
    with pytest.raises(TimeoutError):
        server.do_handshake()
    server.close()
    plain.close()
