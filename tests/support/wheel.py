"""The wheel of this checkout, and environments in which it is installed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import REPOSITORY

HIDDEN = (REPOSITORY, *(Path.home() / name for name in (".cargo", ".rustup")))
"""Folders that a machine does not have on which Knotless is only installed."""
COMPILERS = ("cc", "gcc", "c++", "g++", "rustc", "cargo")


def build(folder: Path) -> Path:
    """Build the wheel into ``folder``, and return its path."""
    options = ["--quiet", "--no-deps", "--use-pep517", "--disable-pip-version-check"]
    wheel = [sys.executable, "-m", "pip", "wheel", *options]
    subprocess.run([*wheel, "-w", folder, REPOSITORY], check=True, stdin=subprocess.DEVNULL)
    (path,) = folder.glob("knotless-*.whl")
    return path


@dataclass(frozen=True)
class Environment:
    """A virtual environment whose programs see neither this checkout nor a compiler.

    They run in the mount namespace of the process ``hiding``.
    """

    folder: Path
    hiding: int

    def run(
        self, command: Sequence[str | Path], cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command with the programs of the environment first in its path."""
        own = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        where = [*own, "--mount", f"--target={self.hiding}", f"--wd={cwd or self.folder}"]
        return subprocess.run(
            ["nsenter", *where, "--", *(str(word) for word in command)],
            env=_environment(self.folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def knotless(
        self, *words: str | Path, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command ``knotless``."""
        return self.run(["knotless", *words], cwd)

    def installed_bytes(self) -> int:
        """Return the size of what is installed, without pip and setuptools."""
        (packages,) = self.folder.glob("lib/python3*/site-packages")
        without = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
        return sum(
            path.lstat().st_size
            for path in packages.rglob("*")
            if path.is_file() and not path.relative_to(packages).parts[0].startswith(without)
        )


@contextmanager
def installed(
    folder: Path, wheel: Path, extras: str = "", *, system: bool = False
) -> Iterator[Environment]:
    """Install the wheel into a new environment; ``system``: with the packages of Debian too.

    Tests that use it are skipped where no mount namespaces can be made, as in a container.
    """
    own = ["--system-site-packages"] if system else []
    subprocess.run(["/usr/bin/python3", "-m", "venv", *own, folder], check=True)
    constraints = REPOSITORY / "constraints.txt"
    pip = ["pip", "install", "--quiet", "--disable-pip-version-check", "--use-pep517"]
    subprocess.run(
        [folder / "bin/python", "-m", *pip, "-c", constraints, f"{wheel}{extras}"],
        env={**_environment(folder), **({"PIP_CONSTRAINT": str(constraints)} if extras else {})},
        check=True,
    )
    mapped = [] if os.geteuid() == 0 else ["--map-root-user"]
    with subprocess.Popen(
        ["unshare", "--mount", *mapped, "sh", "-c", _HIDE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as hiding:
        if hiding.stdin is None or hiding.stdout is None:  # pragma: no cover - both are pipes
            raise ValueError("no pipes")
        if hiding.stdout.readline() != "hidden\n":
            pytest.skip("no mount namespaces can be made here")
        yield Environment(folder, hiding.pid)
        hiding.stdin.close()


def _environment(folder: Path) -> dict[str, str]:
    path = f"{folder / 'bin'}:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {"PATH": path, "HOME": os.environ["HOME"], "LANG": "C.UTF-8"}


_HIDE = "\n".join(
    [
        "set -e",
        *(
            f"[ ! -d {shlex.quote(str(path))} ] || mount -t tmpfs none {shlex.quote(str(path))}"
            for path in HIDDEN
        ),
        f"for name in {' '.join(COMPILERS)}; do",
        '    file=$(command -v "$name") || continue',
        '    mount --bind /dev/null "$(readlink -f "$file")"',
        "done",
        "echo hidden",
        "exec cat",  # until standard input is closed
    ]
)
