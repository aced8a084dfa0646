"""What set-up installs is what was locked: one byte less, more or other is refused, at each step.

The packages are made here, tiny, in place of those that the parts of ``requirements.lock`` name.
The scripts are those of set-up. Nothing comes from the network.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.support import REPOSITORY

BACKEND = """
import zipfile
def build_wheel(directory, config=None, metadata=None):
    name = "{made}-1-py3-none-any.whl"
    with zipfile.ZipFile(directory + "/" + name, "w") as wheel:
        wheel.writestr("{made}.py", "")
        wheel.writestr("{made}-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: {made}\\nVersion: 1\\n")
        wheel.writestr("{made}-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("{made}-1.dist-info/RECORD", "{made}.py,,\\n")
    return name
"""  # noqa: E501
PROJECT = '[build-system]\nrequires = ["backend"]\nbuild-backend = "{backend}"\n'
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
PARTS = {
    "ryu": ["ryu_backend"],
    "demo": ["package_of_demo", "ryu"],
    "run": ["package_of_run"],
    "tests": ["package_of_tests"],
    "own": ["own_backend"],
}
FILES = [name for names in PARTS.values() for name in names]


def wheel(name: str, code: str) -> tuple[str, bytes]:
    """Return a wheel with one module: its file name and content."""
    files = {
        f"{name}.py": code,
        f"{name}-1.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
        f"{name}-1.dist-info/WHEEL": WHEEL,
    }
    lines = []
    for file, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        lines.append(f"{file},sha256={digest.decode()},{len(text)}\n")
    files[f"{name}-1.dist-info/RECORD"] = "".join(lines) + f"{name}-1.dist-info/RECORD,,\n"
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return f"{name}-1-py3-none-any.whl", sink.getvalue()


def source(name: str, backend: str) -> tuple[str, bytes]:
    """Return a source distribution that ``backend`` builds, as Ryu is one."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:gz") as archive:
        for file, text in {
            "pyproject.toml": PROJECT.format(backend=backend),
            "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
        }.items():
            info = tarfile.TarInfo(f"{name}-1/{file}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return f"{name}-1.tar.gz", sink.getvalue()


def content(name: str) -> tuple[str, bytes]:
    """Return the file of a package."""
    if name == "ryu":
        return source("ryu", "ryu_backend")
    made = {"ryu_backend": "ryu", "own_backend": "ours"}.get(name)
    return wheel(name, BACKEND.format(made=made) if made else "")


class Checkout:
    """A checkout with the scripts of set-up, a lock, packages, and an empty environment."""

    def __init__(self, root: Path) -> None:
        self.root, self.packages = root, root / "packages"
        for folder in ("tools", "packages", "ours"):
            (root / folder).mkdir()
        for script in ("locked.sh", "install-locked.sh"):
            shutil.copy(REPOSITORY / "tools" / script, root / "tools")
        lock = ""
        for part, names in PARTS.items():
            lock += f"# part: {part}\n"
            for name in names:
                file, data = content(name)
                (self.packages / file).write_bytes(data)
                lock += f"{name.replace('_', '-')}==1 \\\n"
                lock += f"    --hash=sha256:{hashlib.sha256(data).hexdigest()}\n"
        (root / "requirements.lock").write_text(lock)
        (root / "ours" / "pyproject.toml").write_text(PROJECT.format(backend="own_backend"))
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(root / ".venv")], check=True
        )
        pip = root / ".venv" / "bin" / "pip"
        words = f"{sys.executable} -m pip --python {root}/.venv/bin/python"
        pip.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        pip.chmod(0o755)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Install, from the folder of packages alone."""
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PIP_")},
            **{"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.packages), "PIP_NO_CACHE_DIR": "1"},
        }
        command = [str(self.root / "tools" / "install-locked.sh"), *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def set_up(self) -> subprocess.CompletedProcess[str]:
        """Install everything, as tools/setup.sh does; stop at the first refusal."""
        done = self.run("demo", "run", "tests")
        return done if done.returncode else self.run("--own", "./ours")

    def modules(self) -> set[str]:
        """Return the modules that are installed in the environment."""
        return {path.stem for path in self.root.glob(".venv/lib/python3*/site-packages/*.py")}


def test_what_was_locked_is_installed(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    done = checkout.set_up()
    assert done.returncode == 0, done.stderr
    assert checkout.modules() == {*FILES, "ours"} - {"own_backend"}
    # Nobody else sees what our own packages are built with.
    assert (tmp_path / ".venv" / "build-tools" / "own_backend.py").exists()


@pytest.mark.thin(1)
@pytest.mark.parametrize(
    ("name", "change"),
    [*((name, None) for name in FILES), ("ryu", lambda d: d[:-1]), ("ryu", lambda d: d + b"\0")],
    ids=[*FILES, "less", "more"],
)
def test_a_byte_in_any_step_is_refused(
    name: str, change: Callable[[bytes], bytes] | None, tmp_path: Path
) -> None:
    """A byte of a module, which neither zip nor gzip would miss if it were not for the hash."""
    checkout = Checkout(tmp_path)
    file, data = content(name)
    other = bytearray(data)
    other[len(other) // 2] ^= 1
    (checkout.packages / file).write_bytes(change(data) if change else bytes(other))
    done = checkout.set_up()
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr, done.stderr
    assert name not in checkout.modules()
    assert "ours" not in checkout.modules()


@pytest.mark.deep
def test_a_package_without_a_hash_is_refused(tmp_path: Path) -> None:
    """What a package needs must be locked as well."""
    checkout = Checkout(tmp_path)
    lock = tmp_path / "requirements.lock"
    for part in PARTS:
        text = lock.read_text()
        name = PARTS[part][0].replace("_", "-")
        lock.write_text(re.sub(rf"({name}==1) \\\n.*", r"\1", text))
        done = checkout.set_up()
        assert done.returncode != 0, part
        assert "Hashes are required" in done.stderr
        lock.write_text(text)


def test_an_unknown_part_is_refused(tmp_path: Path) -> None:
    done = Checkout(tmp_path).run("demo", "everything")
    assert done.returncode != 0
    assert "locked: no part everything" in done.stderr


# --- the lock of the repository -----------------------------------------------------------------


def locked(part: str) -> dict[str, list[str]]:
    """Return the hashes of each package of a part, by name and version."""
    words = [str(REPOSITORY / "tools" / "locked.sh"), part]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    packages: dict[str, list[str]] = {}
    for line in text.replace("\\\n", " ").splitlines():
        if line and not line.startswith("#"):
            requirement, *hashes = line.split("--hash=sha256:")
            packages[requirement.partition(";")[0].strip()] = [text.strip() for text in hashes]
    return packages


@pytest.mark.parametrize("part", PARTS)
def test_every_package_has_hashes(part: str) -> None:
    packages = locked(part)
    assert packages
    for requirement, hashes in packages.items():
        assert re.fullmatch(r"[a-z0-9-]+==[\w.]+", requirement)
        assert hashes, requirement
        assert all(re.fullmatch("[0-9a-f]{64}", text) for text in hashes)


def test_the_lock_has_what_the_requirements_name_in_the_pinned_versions() -> None:
    def lines(file: str) -> list[str]:
        text = (REPOSITORY / file).read_text()
        return [line for line in text.splitlines() if line and not line.startswith("#")]

    def plain(name: str) -> str:
        return name.lower().replace("_", "-").replace(".", "-")

    def versions(requirements: Iterable[str]) -> dict[str, set[str]]:
        """Return the versions of each package: a later Python may have another one."""
        by_name: dict[str, set[str]] = {}
        for requirement in requirements:
            name, _, version = requirement.partition(";")[0].strip().partition("==")
            by_name.setdefault(plain(name), set()).add(version)
        return by_name

    have = versions(one for part in ("demo", "run", "tests") for one in locked(part))
    for file in ("requirements.txt", "requirements-dev.txt"):
        assert {plain(name) for name in lines(file)} <= have.keys(), "run tools/lock.sh"
    pinned = versions(line for line in lines("constraints.txt") if "==" in line)
    for name, some in pinned.items():
        assert have.get(name, some) == some, "run tools/lock.sh"


def test_a_package_that_a_later_part_needs_on_more_platforms_is_in_it() -> None:
    """MkDocs needs on every platform what Click needs on Windows only."""
    words = [str(REPOSITORY / "tools" / "locked.sh"), "tests"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert re.search(r"^colorama==\S+ \\$", text, re.MULTILINE)


def test_the_lock_names_no_registry() -> None:
    text = (REPOSITORY / "requirements.lock").read_text()
    assert not re.search(r"https?://|--index-url|--find-links", text)
    for script in (*(REPOSITORY / "tools").glob("*.sh"), REPOSITORY / "Dockerfile"):
        assert "trusted=yes" not in script.read_text()


def test_the_bill_of_materials_has_every_package_and_crate(tmp_path: Path) -> None:
    words = [sys.executable, str(REPOSITORY / "tools" / "sbom.py"), str(tmp_path / "bom.json")]
    subprocess.run(words, check=True)
    bom = json.loads((tmp_path / "bom.json").read_text())
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.5")
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bom["serialNumber"])
    refs = [component["bom-ref"] for component in bom["components"]]
    assert len(refs) == len(set(refs))
    for part in PARTS:
        for requirement in locked(part):
            name, version = requirement.split("==")
            assert f"pkg:pypi/{name}@{version}" in refs
    crates = re.findall(
        r'name = "([^"]+)"\nversion = "([^"]+)"\nsource',
        (REPOSITORY / "core/Cargo.lock").read_text(),
    )
    assert crates
    assert {f"pkg:cargo/{name}@{version}" for name, version in crates} <= set(refs)
