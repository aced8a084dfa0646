"""Network namespaces and their interfaces, through iproute2's ``ip``."""

from __future__ import annotations

import ctypes
import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from knotless.base.errors import EmulationError
from knotless.emulation.names import NETNS_DIRECTORY

INTERFACE_GROUP = 6653
"""The kernel's group number (ip-link(8)) of one end of each veth pair that we create."""
CLONE_NEWNET = 0x40000000


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Enter a network namespace (a path such as /run/netns/NAME) for the block.

    Only the calling thread enters it; sockets that it opens there stay there. Raises OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/self/ns/net").open() as home, Path(namespace).open() as there:
        if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
        try:
            yield
        finally:
            if libc.setns(home.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"cannot leave {namespace}")


def ip_batch(lines: Iterable[str], *, namespace: str | None = None, force: bool = False) -> None:
    """Run ``ip`` commands in one process, in ``namespace`` if one is given.

    With ``force`` errors are ignored; otherwise raises :class:`EmulationError` with the first
    one. Names in the lines must have been checked: a line break would start another command.
    """
    text = "".join(f"{line}\n" for line in lines)
    if not text:
        return
    argv = ["ip", *(["-n", namespace] if namespace else []), *(["-force"] if force else [])]
    done = subprocess.run(
        [*argv, "-batch", "-"], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode != 0 and not force:
        complaint = " ".join((done.stderr or done.stdout).split()[:30])
        raise EmulationError(f"ip in namespace {namespace or 'root'}: {complaint}")


def interfaces_up(namespace: str) -> set[str]:
    """Return the interfaces of a namespace that are up, whether or not they have a carrier.

    Those that have been made dormant are not among them. Raises :class:`EmulationError` if there
    is no such namespace.
    """
    argv = ["ip", "-n", namespace, "-json", "link", "show"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EmulationError(f"namespace {namespace}: {' '.join(done.stderr.split())[:300]}")
    links = json.loads(done.stdout or "[]")
    return {
        str(link["ifname"])
        for link in links
        if "UP" in link["flags"] and link["linkmode"] == "DEFAULT"
    }


def enter(namespace: str, argv: Sequence[str]) -> list[str]:
    """Return the command that runs ``argv`` in a network namespace (and changes nothing else)."""
    return ["nsenter", f"--net={NETNS_DIRECTORY / namespace}", "--", *argv]


NO_IPV6 = """
for which in all default; do
    setting=/proc/sys/net/ipv6/conf/$which/disable_ipv6
    [ ! -e "$setting" ] || echo 1 > "$setting"
done
"""
"""Shell text after which the kernel sends nothing by itself into a namespace's interfaces."""


def run_script(namespace: str, script: str, *values: str) -> None:
    """Run shell text in a network namespace, up to its first command that fails.

    ``values`` are its $1, $2 and so on: what comes from a user must be no part of ``script``.
    Raises :class:`EmulationError` with what it complains of.
    """
    argv = enter(namespace, ["sh", "-ec", script, "sh", *values])
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        complaint = " ".join((done.stderr or done.stdout).split())[:300]
        raise EmulationError(f"namespace {namespace}: {complaint}")


def add(namespace: str) -> None:
    """Make a network namespace, without IPv6."""
    ip_batch([f"netns add {namespace}"])
    run_script(namespace, NO_IPV6 + "ip link set lo up")


def remove_pairs(namespace: str) -> None:
    """Delete all veth pairs of ours that have an end in ``namespace``, if it exists.

    Call this before removing the namespaces: a namespace that is still in use would keep its
    interfaces and their names. The pairs are in :data:`INTERFACE_GROUP`, so that the kernel
    deletes them all at once; one at a time takes 20 ms each.
    """
    ip_batch([f"link delete group {INTERFACE_GROUP}"], namespace=namespace, force=True)


def remove(namespaces: Sequence[str]) -> None:
    """Remove the namespaces that exist."""
    existing = [name for name in namespaces if (NETNS_DIRECTORY / name).exists()]
    ip_batch([f"netns delete {name}" for name in existing], force=True)
