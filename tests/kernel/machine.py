"""Run a command on its own Linux kernel: Debian's user-mode-linux, a kernel as a process.

It has what this machine's kernel may lack: bridge VLAN filtering, 802.1Q devices, tc flower, netem,
Open vSwitch, NFQUEUE. The command runs as root in it, whoever runs the test, and sees this
machine's files, which it cannot change; it may write to /run and to the folder $SHARED, which is
the one that ``run`` is given. One CPU, 100 ticks a second: for correctness, not for timing.

    python -m tests.kernel.machine ip link add br0 type bridge vlan_filtering 1
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

KERNEL = "linux.uml"
HERE = Path(__file__).resolve().parent
MEMORY_MB = 512
DEADLINE_S = 300.0


class NoKernel(Exception):  # noqa: N818
    """The kernel did not start, or did not complete the command; holds the output."""


def installed() -> bool:
    """Return whether the kernel is installed: package user-mode-linux, from tools/setup.sh."""
    return shutil.which(KERNEL) is not None


def run(
    *command: str, shared: Path, deadline_s: float = DEADLINE_S, memory_mb: int = MEMORY_MB
) -> tuple[int, str]:
    """Run ``command`` and return its exit status, and what it printed on both its outputs.

    Raises
    ------
    NoKernel
        The kernel ended without the command's status, or the deadline passed.

    """
    (shared / "command").write_text(f"cd {shlex.quote(str(Path.cwd()))}\n{shlex.join(command)}\n")
    kernel = subprocess.Popen(
        [
            *("nice", KERNEL, f"mem={memory_mb}M", "root=/dev/root", "rootfstype=hostfs"),
            *("rootflags=/", "ro", f"init={HERE / 'init.sh'}", f"SHARED={shared}"),
            f"FOLDER={Path.cwd()}",
            *(f"umid=kernel{os.getpid()}", f"uml_dir={shared}", "con=null", "con0=null,fd:1"),
            *("quiet", "loglevel=4", "panic=-1"),
        ],
        env={**os.environ, "LD_PRELOAD": str(_xstate(shared)), "TMPDIR": "/dev/shm"},  # noqa: S108
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        console = kernel.communicate(timeout=deadline_s)[0]
    except subprocess.TimeoutExpired:
        console = f"no end after {deadline_s} s".encode()
    finally:
        if kernel.poll() is None:
            # Its processes are in its session with it.
            os.killpg(kernel.pid, signal.SIGKILL)
            kernel.communicate()
    printed = _text(shared / "output")
    status = _text(shared / "status").strip()
    if not status:
        raise NoKernel(f"{console.decode(errors='replace')[-2000:]}\n{printed[-2000:]}")
    return int(status), printed


def _xstate(folder: Path) -> Path:
    library = folder / "xstate.so"
    source = str(HERE / "xstate.c")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), source], check=True)
    return library


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def main() -> int:
    """Run the command given as arguments, with its output and its exit status."""
    with tempfile.TemporaryDirectory(prefix="knotless-kernel-") as folder:
        status, printed = run(*sys.argv[1:], shared=Path(folder))
    sys.stdout.write(printed)
    return status


if __name__ == "__main__":
    sys.exit(main())
