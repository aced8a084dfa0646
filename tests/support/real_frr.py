"""Real FRR in network namespaces of its own: the routes that it installs.

Debian's packages are unpacked, not installed. Everything runs in a mount and a network namespace
that the caller has made (``unshare -mn``), and ends with it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.support.frr_fabrics import FrrFabric

Routes = dict[str, list[list[str]]]
"""By prefix the next hops: address (empty if connected) and interface, both empty if dropped."""
_LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/frr")
_VLAN = ("link", "add", "vlan10", "type", "veth", "peer", "name", "srv0")
_STEADY = 8
"""How often, a second apart, routes must be the same to be taken as settled."""
_LIMIT_S = 90


def prepare() -> None:
    """Add the users of FRR to this mount namespace, and a place for network namespaces."""
    folder = Path(tempfile.mkdtemp(prefix="knotless-frr-"))
    users = Path("/etc/passwd").read_text() + "frr:x:3901:3901::/nonexistent:/bin/false\n"
    groups = Path("/etc/group").read_text() + "frr:x:3901:\nfrrvty:x:3902:frr\n"
    for name, text in (("passwd", users), ("group", groups)):
        (folder / name).write_text(text)
        _run("mount", "--bind", str(folder / name), f"/etc/{name}")
    shutil.rmtree(folder, ignore_errors=True)
    Path("/run/netns").mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "none", "/run/netns")
    _run("mount", "-t", "tmpfs", "-o", "mode=1777", "none", "/var/tmp")  # noqa: S108 - our own


def real_routes(fabric: FrrFabric, frr: Path) -> dict[str, Routes]:
    """Return the routes of each router, once they have settled.

    ``frr`` is the folder into which the packages are unpacked. Raises RuntimeError if they do not
    settle.
    """
    paths = ":".join(str(frr / path) for path in _LIBRARIES)
    environment = {**os.environ, "LD_LIBRARY_PATH": paths}
    with tempfile.TemporaryDirectory(prefix="knotless-frr-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        for router in fabric.numbers:
            _run("ip", "netns", "add", router)
            stack.callback(_run, "ip", "netns", "del", router)
            _run("ip", "-n", router, "link", "set", "lo", "up")
        for (a, a_port), (b, b_port) in fabric.cables:
            ends = ("link", "add", a_port, "netns", a, "type", "veth", "peer", "name", b_port)
            _run("ip", *ends, "netns", b)
            for router, port in ((a, a_port), (b, b_port)):
                _run("ip", "-n", router, "link", "set", port, "up")
        for router in fabric.numbers:
            if router in fabric.lans:
                _run("ip", "-n", router, *_VLAN)
                for port in ("srv0", "vlan10"):
                    _run("ip", "-n", router, "link", "set", port, "up")
            for daemon in ("zebra", "staticd", "bgpd"):
                process = _daemon(fabric, router, daemon, frr, folder / router, environment)
                stack.callback(_end, process)
        return _settled([*fabric.numbers], frr, folder, environment)


def _daemon(
    fabric: FrrFabric,
    router: str,
    daemon: str,
    frr: Path,
    folder: Path,
    environment: dict[str, str],
) -> subprocess.Popen[bytes]:
    """Start a daemon of a router. What staticd reads has no sections, whose ends confuse it."""
    folder.mkdir(exist_ok=True)
    text = fabric.text(router)
    if daemon == "staticd":
        text = "\n".join(line for line in text.split("\n") if line.startswith("ip route")) + "\n"
    file = folder / f"{daemon}.conf"
    file.write_text(text)
    _run("chown", "-R", "3901:3901", str(folder))
    with (folder / f"{daemon}.out").open("wb") as out:
        process = subprocess.Popen(
            [
                *("ip", "netns", "exec", router, str(frr / "usr/lib/frr" / daemon)),
                *("-u", "frr", "-g", "frr", "-f", str(file), "-i", str(folder / f"{daemon}.pid")),
                *("--vty_socket", str(folder), "-z", str(folder / "zserv.api")),
            ],
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    deadline = time.monotonic() + 10
    while not (folder / f"{daemon}.vty").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return process


def _settled(
    routers: list[str], frr: Path, folder: Path, environment: dict[str, str]
) -> dict[str, Routes]:
    (folder / "vtysh.conf").write_text("username root nopassword\n")
    last: dict[str, Routes] = {}
    same = 0
    deadline = time.monotonic() + _LIMIT_S
    while time.monotonic() < deadline:
        time.sleep(1)
        now = {
            router: _routes(
                _run(
                    *(str(frr / "usr/bin/vtysh"), "--config_dir", str(folder)),
                    *("--vty_socket", str(folder / router), "-c", "show ip route json"),
                    environment=environment,
                )
            )
            for router in routers
        }
        same = same + 1 if now == last else 0
        last = now
        if same >= _STEADY:
            return now
    raise RuntimeError("the routes of FRR have not settled")


def _routes(text: str) -> Routes:
    """Return the routes that are used, from ``show ip route json``."""
    read: dict[str, list[dict[str, Any]]] = json.loads(text or "{}")
    return {
        prefix: sorted(
            [hop.get("ip", ""), hop.get("interfaceName", "")]
            for hop in route["nexthops"]
            if hop.get("fib")
        )
        for prefix, routes in sorted(read.items())
        for route in routes
        if route.get("selected") and any(hop.get("fib") for hop in route["nexthops"])
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(10)


def _run(*words: str, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr or done.stdout}")
    return done.stdout
