"""The wheel of this checkout, and environments in which it is installed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import REPOSITORY

HIDDEN = (REPOSITORY, *(Path.home() / name for name in (".cargo", ".rustup")))
"""Folders that a machine does not have on which Knotless is only installed."""
COMPILERS = ("cc", "gcc", "c++", "g++", "rustc", "cargo")


def build(folder: Path) -> Path:
    """Build the wheel into ``folder``, and return its path."""
    options = ["--quiet", "--no-deps", "--use-pep517", "--disable-pip-version-check"]
    wheel = [sys.executable, "-m", "pip", "wheel", *options]
    subprocess.run([*wheel, "-w", folder, REPOSITORY], check=True, stdin=subprocess.DEVNULL)
    (found,) = folder.glob("knotless-*.whl")
    return found


@dataclass(frozen=True)
class Environment:
    """A virtual environment; its programs see neither this checkout nor a compiler.

    That takes a mount namespace, so only root and users who may have user namespaces can run them.
    """

    folder: Path

    @classmethod
    def make(
        cls, folder: Path, wheel: Path, extras: str = "", *, system: bool = False
    ) -> Environment:
        """Make an environment with the wheel; ``system``: with the packages of Debian too."""
        own = ["--system-site-packages"] if system else []
        subprocess.run(["/usr/bin/python3", "-m", "venv", *own, folder], check=True)
        made = cls(folder)
        pip = ["install", "--quiet", "--disable-pip-version-check", "--use-pep517"]
        constraints = REPOSITORY / "constraints.txt"
        done = made.run(
            [folder / "bin/python", "-m", "pip", *pip, "-c", constraints, f"{wheel}{extras}"],
            PIP_CONSTRAINT=str(constraints) if extras else "",
            hidden=False,
        )
        assert done.returncode == 0, done.stderr
        return made

    def run(
        self,
        command: Sequence[str | Path],
        cwd: Path | None = None,
        hidden: bool = True,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command with the programs of the environment first in its path."""
        if hidden:
            command = [*_NAMESPACE, "sh", "-c", _HIDE, *command]
        path = f"{self.folder / 'bin'}:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
        return subprocess.run(
            [str(word) for word in command],
            cwd=cwd or self.folder,
            env={"PATH": path, "HOME": os.environ["HOME"], "LANG": "C.UTF-8", **environment},
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


_NAMESPACE = ["unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",))]
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
        'exec "$0" "$@"',
    ]
)
