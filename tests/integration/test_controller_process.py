"""The controller's process: an error is reported in one line, with exit status 2."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast
from urllib.request import urlopen

import psutil
import pytest

from knotless.base.ports import free_port
from tests.support.controller_programs import APPLICATION, controller_command
from tests.support.lone_controller import lone_controller
from tests.support.waiting import HANG_S, until


@pytest.fixture
def taken() -> Iterator[int]:
    """Yield a loopback port on which another socket listens with address sharing."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.fixture(params=[None, (APPLICATION,)], ids=["alone", "ryu"])
def applications(request: pytest.FixtureRequest) -> tuple[str, ...] | None:
    """Return those of Ryu, which then runs the controller; None: it runs alone."""
    return cast("tuple[str, ...] | None", request.param)


def fails(config: str | None, command: Sequence[str], directory: Path) -> str:
    """Start the controller, which must end with status 2; return its error line."""
    environment = {key: value for key, value in os.environ.items() if key != "KNOTLESS_CONFIG"}
    if config is not None:
        path = directory / "lab.yaml"
        path.write_text(config)
        environment["KNOTLESS_CONFIG"] = str(path)
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    (line,) = [row for row in done.stderr.splitlines() if row.startswith("knotless: ")]
    return line


def test_the_openflow_port_is_taken_even_by_one_who_would_share(
    taken: int, tmp_path: Path, applications: tuple[str, ...] | None
) -> None:
    command = controller_command(taken, applications=applications)
    line = fails("fabric: ring,4", command, tmp_path)
    assert f"cannot listen for OpenFlow on 127.0.0.1 port {taken}" in line


def test_the_rest_port_of_the_configuration_is_taken(
    taken: int, tmp_path: Path, applications: tuple[str, ...] | None
) -> None:
    config = f"fabric: ring,4\nrest: {{port: {taken}}}"
    line = fails(config, controller_command(free_port(), applications=applications), tmp_path)
    assert f"cannot listen for REST on 127.0.0.1 port {taken}" in line


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            ("key.pem", "cert.pem", None),
            "TLS needs a key, a certificate and the CA of the switches: give --{} as well",
        ),
        (
            ("key.pem", "cert.pem", "ca.pem"),
            "key.pem: no such file; TLS needs key, certificate and CA",
        ),
    ],
)
def test_tls_without_its_files_is_refused(
    files: tuple[str, str, str | None],
    words: str,
    tmp_path: Path,
    applications: tuple[str, ...] | None,
) -> None:
    command = controller_command(free_port(), free_port(), files, applications)
    option = "tls-ca" if applications is None else "ca-certs"
    assert words.format(option) in fails("fabric: ring,4", command, tmp_path)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("fabrik: ring,4", "lab.yaml: unknown key 'fabrik'"),
        ("fabric: ring,four", "lab.yaml: fabric: "),
        ("fabric: lost.json", "lost.json"),
        ("fabric: ring,4\nengine: magic", "magic"),
        ("fabric: ring,4\nengine: updown\nroot: s9\n", "s9"),
        ("flow_control: sometimes", "lab.yaml: flow_control: 'sometimes' is not one of 'auto',"),
        (
            "fabric: torus,5,5\nengine: dor\nflow_control: pause",
            "dor on torus,5,5 CAN DEADLOCK under PAUSE: s1:2/0 -> s2:2/0 -> s3:2/0 -> s4:2/0 -> "
            "s5:2/0 -> s1:2/0; ",
        ),
    ],
)
def test_a_mistake_in_the_configuration(config: str, words: str, tmp_path: Path) -> None:
    # Both programs read it alike.
    applications = (APPLICATION,) if len(config) % 2 else None
    command = controller_command(free_port(), free_port(), applications=applications)
    assert words in fails(config, command, tmp_path)


@pytest.mark.smoke
def test_a_missing_configuration_is_reported(
    tmp_path: Path, applications: tuple[str, ...] | None
) -> None:
    done = subprocess.run(
        controller_command(applications=applications),
        cwd=tmp_path,
        env={**os.environ, "KNOTLESS_CONFIG": "/nowhere/lab.yaml"},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 2
    assert "knotless: /nowhere/lab.yaml: no such file" in done.stderr


def test_with_no_configuration_it_serves_the_defaults_on_loopback_alone(
    tmp_path: Path, applications: tuple[str, ...] | None
) -> None:
    openflow, rest = free_port(), free_port()
    environment = {key: value for key, value in os.environ.items() if key != "KNOTLESS_CONFIG"}
    with (tmp_path / "log").open("wb") as log:
        controller = subprocess.Popen(
            controller_command(openflow, rest, applications=applications),
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:

        def listening() -> set[tuple[str, int]]:
            assert controller.poll() is None, (tmp_path / "log").read_text()
            return {
                (connection.laddr.ip, connection.laddr.port)
                for connection in psutil.Process(controller.pid).net_connections()
                if connection.status == psutil.CONN_LISTEN
            }

        until("its sockets", lambda: len(listening()) >= 2)
        # Unlike plain Ryu, not on every address, and not also on the old OpenFlow port.
        assert listening() == {("127.0.0.1", openflow), ("127.0.0.1", rest)}
        with urlopen(f"http://127.0.0.1:{rest}/status", timeout=HANG_S) as answer:
            status = json.load(answer)
        assert (status["fabric"], status["engine"]) == ("torus,4,4", "dor")
        assert status["flow_control"] == status["check"]["flow_control"] == "pause"
        assert status["check"]["acyclic"] is True
        assert "no knotless.yaml here: using the defaults" in (tmp_path / "log").read_text()
        controller.terminate()
        assert controller.wait(timeout=HANG_S) == 0
    finally:
        controller.kill()
        controller.wait()


OTHER_APPLICATION = """
from ryu import cfg
from ryu.app.wsgi import ControllerBase, Response, WSGIApplication, route
from ryu.base import app_manager

cfg.CONF.set_default("wsapi_port", PORT)


class Hello(ControllerBase):
    @route("hello", "/hello", methods=["GET"])
    def hello(self, _request, **_):
        return Response(content_type="text/plain", body=b"hello")


class Other(app_manager.RyuApp):
    _CONTEXTS = {"wsgi": WSGIApplication}

    def __init__(self, *args, wsgi, **kwargs):
        super().__init__(*args, **kwargs)
        wsgi.register(Hello, {"app": self})
"""


def test_another_application_with_ryus_web_server_runs_beside_ours(tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    port = free_port()
    other.write_text(OTHER_APPLICATION.replace("PORT", str(port)))
    both = (str(other), APPLICATION)
    with lone_controller(tmp_path, "fabric: ring,4", applications=both) as controller:

        def answers() -> bool:
            with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/hello", timeout=10) as answer:
                return bool(answer.read() == b"hello")
            return False

        until("the other application answers", answers)
        assert controller.status()["fabric"] == "ring,4"
