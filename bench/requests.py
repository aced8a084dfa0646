"""What clients without token cost a controller: 20 that ask for its status, one after the other.

The controller is alone, without switches. ``cores`` is its processor time per second of real time.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import click
import psutil

from bench.support.attack import BUSY, ask
from bench.support.entry import about, as_stored, run_benchmark
from knotless.base.package import CHECKOUT
from knotless.base.ports import free_port

START_LIMIT_S = 60.0


def measure(fabric: str, path: str, seconds: float) -> dict[str, object]:
    """Return what the clients get and what the controller takes."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "knotless.yaml")
        config.write_text(f"fabric: {fabric}\ndiscovery: none\nrest: {{port: {port}}}\n")
        words = (str(Path(sys.executable).with_name("ryu-manager")), "controller/app.py")
        more = ("--ofp-tcp-listen-port", str(free_port()))
        environment = {**os.environ, "KNOTLESS_CONFIG": str(config)}
        with subprocess.Popen(
            [*words, *more], cwd=CHECKOUT, env=environment, stderr=subprocess.DEVNULL
        ) as controller:
            try:
                return _load(controller.pid, port, path, seconds)
            finally:
                controller.terminate()


def _load(pid: int, port: int, path: str, seconds: float) -> dict[str, object]:
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            if ask(port) == http.HTTPStatus.OK:
                break
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)
    time.sleep(3)  # what it computes after its start
    process, end = psutil.Process(pid), time.monotonic() + seconds
    answers: list[int] = []

    def client() -> None:
        while time.monotonic() < end:
            answers.append(ask(port, path))

    clients = [threading.Thread(target=client) for _ in range(BUSY)]
    began, used_s = time.monotonic(), sum(process.cpu_times()[:2])
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    passed_s = time.monotonic() - began
    return {
        "path": path,
        "clients": BUSY,
        "answers_per_s": round(len(answers) / passed_s, 1),
        "refused": sum(status != http.HTTPStatus.OK for status in answers),
        "cores": round((sum(process.cpu_times()[:2]) - used_s) / passed_s, 3),
    }


@click.command()
@click.option("--fabric", default="torus,8,8", show_default=True)
@click.option("--seconds", default=10.0, show_default=True)
def command(fabric: str, seconds: float) -> None:
    """Print what 20 clients without token get, and what they cost the controller."""
    begun = about()
    rows = [measure(fabric, path, seconds) for path in ("/status", "/fabric", "/metrics")]
    click.echo(as_stored(begun, fabric=fabric, rows=rows))


if __name__ == "__main__":
    run_benchmark(command)
