"""A minimal Debian of its own in a folder, in which commands run as on a fresh machine.

Commands see only the files of that Debian, and their own processes and mounts; with
``network=False`` they have no network either. Daemons do not start when packages are installed.
Needs root and debootstrap. This isolates well-meaning scripts, it is no security boundary.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SCRIPT = "debootstrap"
MIRROR = "http://deb.debian.org/debian"
PACKAGES = "ca-certificates,sudo"
"""Packages of every installed Debian and Vagrant box that debootstrap's smallest variant lacks."""
BUNDLE = Path("etc/ssl/certs/ca-certificates.crt")
NETWORK_FILES = ("etc/resolv.conf", "etc/hosts", "etc/pip.conf", str(BUNDLE))
"""Files by which the machine outside reaches the registries of packages."""
VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_CERT", "SSL_CERT_FILE")
_NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL")
_ENTER = """set -e
root=$1; shift
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs "$root/run"
mkdir -m 1777 "$root/run/lock"
mkdir -p "$root/dev/shm"
mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs "$root/dev/shm"
exec chroot "$root" /usr/bin/env -i "$@"
"""


def missing() -> str | None:
    """Return why there can be no such Debian here, or None."""
    if subprocess.run([*_NAMESPACES, "true"], capture_output=True, check=False).returncode:
        return "needs root that may make namespaces"
    if shutil.which(SCRIPT) is None:
        return "needs Debian's package debootstrap"
    return None


@dataclass(frozen=True)
class MinimalDebian:
    """A Debian in the folder ``root``."""

    root: Path

    def run(
        self, command: str, *, user: str = "root", network: bool = True, limit_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of a login shell; TimeoutExpired if it takes longer than ``limit_s``."""
        home = "/root" if user == "root" else f"/home/{user}"
        words = [f"HOME={home}", f"USER={user}", "LANG=C.UTF-8", "TERM=dumb"]
        words += [f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ]
        shell = ["/bin/bash", "-l", "-c", command]
        own = () if network else ("--net",)
        enter = (*_NAMESPACES, *own, "/bin/sh", "-c", _ENTER, "enter")
        return subprocess.run(
            [*enter, str(self.root), *words, "/usr/sbin/runuser", "-u", user, "--", *shell],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit_s,
            check=False,
        )

    def add_user(self, name: str) -> None:
        """Add a user who may use sudo without a password."""
        done = self.run(f"useradd -m -s /bin/bash {shlex.quote(name)}", limit_s=60)
        assert done.returncode == 0, done.stdout
        rule = self.root / "etc/sudoers.d" / name
        kept = " ".join(VARIABLES)
        rule.write_text(f'{name} ALL=(ALL) NOPASSWD: ALL\nDefaults env_keep += "{kept}"\n')
        rule.chmod(0o440)

    def copy_in(self, source: Path, target: str, user: str, without: Sequence[str] = ()) -> None:
        """Copy a folder; ``without`` are names of folders in it, as rsync's --exclude has them."""
        place = self.root / target.lstrip("/")
        place.mkdir(parents=True)
        excluded = [f"--exclude={name.rstrip('/')}" for name in without]
        pack = ["tar", "-C", str(source), *excluded, "-cf", "-", "."]
        with subprocess.Popen(pack, stdout=subprocess.PIPE) as packed:
            unpack = ["tar", "-C", str(place), "-xf", "-"]
            subprocess.run(unpack, stdin=packed.stdout, check=True)
        assert packed.returncode == 0
        done = self.run(f"chown -R {user}: {shlex.quote(target)}", limit_s=300)
        assert done.returncode == 0, done.stdout


def make(root: Path, suite: str) -> MinimalDebian:
    """Make a Debian of a suite, such as bookworm. Raises CalledProcessError if that fails."""
    command = [SCRIPT, "--variant=minbase", f"--include={PACKAGES}", suite, str(root), MIRROR]
    subprocess.run([*_NAMESPACES, "--mount-proc", *command], check=True, capture_output=True)
    for name in NETWORK_FILES:
        if Path("/", name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path("/", name), root / name)
    lines = [
        f"deb {MIRROR} {suite} main",
        f"deb {MIRROR} {suite}-updates main",
        f"deb {MIRROR}-security {suite}-security main",
    ]
    (root / "etc/apt/sources.list").write_text("\n".join(lines) + "\n")
    # apt's check of dates, if it is off outside, where the clock may differ from the archive's.
    settings = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True)
    kept = [line for line in settings.stdout.splitlines() if line.startswith("Acquire::Check-")]
    (root / "etc/apt/apt.conf.d/90outside").write_text("\n".join(kept) + "\n")
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    return MinimalDebian(root)
