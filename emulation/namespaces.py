"""Network namespaces and what is in them, by iproute2's ``ip``."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from common.errors import EmulationError
from emulation.names import NETNS_DIRECTORY

INTERFACE_GROUP = 6653
"""The kernel's group number (ip-link(8)) of one end of each veth pair that we make."""
CLONE_NEWNET = 0x40000000


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Be in a network namespace (a path such as /run/netns/NAME) for the block.

    Only the calling thread is; what it opens there stays there. Raises OSError.
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
    """Run ``ip`` commands in one process, in ``namespace`` where one is given.

    With ``force`` it goes on after a line that fails and says nothing. Raises
    :class:`EmulationError` with the first complaint otherwise. Lines must be made of
    names that have been checked: a line break in one would be a command.
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


def enter(namespace: str, argv: Sequence[str]) -> list[str]:
    """Return the command that runs ``argv`` in a network namespace (and changes nothing else)."""
    return ["nsenter", f"--net={NETNS_DIRECTORY / namespace}", "--", *argv]


_QUIET = """set -e
for which in all default; do
    setting=/proc/sys/net/ipv6/conf/$which/disable_ipv6
    [ ! -e "$setting" ] || echo 1 > "$setting"
done
ip link set lo up"""


def add(namespace: str) -> None:
    """Make a network namespace in which the kernel says nothing by itself (no IPv6)."""
    ip_batch([f"netns add {namespace}"])
    done = subprocess.run(
        enter(namespace, ["sh", "-c", _QUIET]), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise EmulationError(f"namespace {namespace}: {done.stderr.strip()}")


def remove_pairs(namespace: str) -> None:
    """Delete every veth pair of ours that has an end in ``namespace``, if that exists.

    Do this before removing the namespaces: one that something still holds would keep its
    interfaces, and their names, for as long. Ours are of :data:`INTERFACE_GROUP`, so that
    the kernel deletes all at once; one by one takes 20 ms each.
    """
    ip_batch([f"link delete group {INTERFACE_GROUP}"], namespace=namespace, force=True)


def remove(namespaces: Sequence[str]) -> None:
    """Remove those of the namespaces that exist."""
    existing = [name for name in namespaces if (NETNS_DIRECTORY / name).exists()]
    ip_batch([f"netns delete {name}" for name in existing], force=True)
