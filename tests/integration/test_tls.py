"""TLS between switches and controller, with certificates of one CA."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from knotless.emulation import certificate_authority
from knotless.emulation.certificates import Certificates, Pair
from knotless.emulation.names import Names
from tests.support.controller_programs import APPLICATION
from tests.support.fabric_fixtures import FREE_PORTS, Knotless
from tests.support.fake_switch import FakeSwitch
from tests.support.lone_controller import LoneController, lone_controller
from tests.support.openflow_messages import VALID
from tests.support.waiting import HANG_S, until

SWITCHES = 4
CONFIG = "fabric: ring,4\nconnect_timeout_s: 1\ndiscovery: none\nreread_interval_s: 3600\n"
"""The switches of the test carry no probes, and tell of no rules that they hold."""
PORTS = 3


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificate_authority.create(tmp_path_factory.mktemp("ours") / "tls")


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificate_authority.create(tmp_path_factory.mktemp("theirs") / "tls")


@pytest.fixture(params=[None, (APPLICATION,)], ids=["alone", "ryu"])
def controller(
    own: Certificates, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[LoneController]:
    files = (own.controller.key, own.controller.certificate, own.authority)
    with lone_controller(tmp_path, CONFIG, tls=files, applications=request.param) as running:
        yield running


def context(own: Certificates, pair: Pair | None) -> ssl.SSLContext:
    """Return the TLS of a switch that shows this certificate and checks the controller's."""
    tls = ssl.create_default_context(cafile=str(own.authority))
    # As strict as by default from Python 3.13 on.
    tls.verify_flags |= ssl.VERIFY_X509_STRICT
    if pair is not None:
        tls.load_cert_chain(pair.certificate, pair.key)
    return tls


def ended(connection: socket.socket) -> bool:
    """Return True if the controller closes the connection; the timeout is the deadline."""
    with contextlib.suppress(ssl.SSLError, ConnectionResetError, BrokenPipeError):
        while connection.recv(1 << 16):
            pass
    connection.close()
    return True


def try_to_greet(controller: LoneController, tls: ssl.SSLContext) -> None:
    """Connect with this certificate, greet, and wait until the controller ends it."""
    with (
        socket.create_connection(("127.0.0.1", controller.openflow), timeout=HANG_S) as plain,
        contextlib.suppress(ssl.SSLError, ConnectionResetError, BrokenPipeError),
        tls.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        secured.sendall(VALID["hello"])
        assert ended(secured)


@pytest.mark.smoke
def test_every_switch_is_served(controller: LoneController, own: Certificates) -> None:
    with contextlib.ExitStack() as stack:
        switches = [
            stack.enter_context(
                contextlib.closing(
                    FakeSwitch(controller.openflow, dpid, PORTS, tls=context(own, own.switches))
                )
            )
            for dpid in range(1, SWITCHES + 1)
        ]

        def all_installed() -> bool:
            return all(s.answer_all() for s in switches) and len(controller.installed()) == SWITCHES

        until("all switches have their rules", all_installed)
        assert controller.status()["ready"] is True
        assert all(switch.flow_mods > 0 for switch in switches)


@pytest.mark.smoke
def test_a_switch_without_a_certificate_is_refused(
    controller: LoneController, own: Certificates
) -> None:
    try_to_greet(controller, context(own, None))
    until("one line", lambda: "is refused: it has no certificate" in controller.log())
    assert not controller.status()["switches"]["s1"]["connected"]


def test_a_certificate_of_another_ca_is_refused(
    controller: LoneController, own: Certificates, others: Certificates
) -> None:
    try_to_greet(controller, context(own, others.switches))
    words = "is refused: its certificate is not valid: "
    until("one line", lambda: words in controller.log())


def test_the_controllers_certificate_does_not_make_a_switch(
    controller: LoneController, own: Certificates
) -> None:
    try_to_greet(controller, context(own, own.controller))
    words = "is refused: its certificate is not valid: "
    until("one line", lambda: words in controller.log())


def test_without_tls_nobody_is_served(controller: LoneController) -> None:
    with socket.create_connection(("127.0.0.1", controller.openflow), timeout=HANG_S) as plain:
        plain.sendall(VALID["hello"])
        assert ended(plain)
    until("one line", lambda: "is refused: no TLS handshake: " in controller.log())
    assert "Traceback" not in controller.log()


def test_clients_that_say_nothing_keep_no_switch_waiting(
    controller: LoneController, own: Certificates
) -> None:
    silent = [
        socket.create_connection(("127.0.0.1", controller.openflow), timeout=HANG_S)
        for _ in range(50)
    ]
    switch = FakeSwitch(controller.openflow, 1, PORTS, tls=context(own, own.switches))
    with contextlib.closing(switch):
        until(
            "s1 has its rules",
            lambda: switch.answer_all() and "s1" in controller.installed(),
            # The silent clients have ten seconds.
            8,
        )
    assert all(ended(connection) for connection in silent)
    assert "is refused: no TLS handshake within 10 s" in controller.log()


def test_sixteen_switches_of_a_fabric(knotless: Knotless, names: Names) -> None:
    words = ("torus,4,4", "--name", names.name, *FREE_PORTS, "--tls")
    done = knotless("up", *words)
    assert done.returncode == 0, done.stderr
    try:
        assert (names.tls_directory / "switches-key.pem").stat().st_mode & 0o077 == 0
        log = (names.directory / "controller.log").read_text()
        assert "ready: all 16 switches installed" in log
        assert knotless("check", "--live", "--name", names.name).returncode == 0
    finally:
        assert knotless("down", "--name", names.name).returncode == 0


def test_tls_needs_our_controller(knotless: Knotless, names: Names) -> None:
    done = knotless("up", "ring,4", "--name", names.name, "--tls", "--controller", "none")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--tls needs our own controller" in done.stderr
