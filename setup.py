"""What ``pyproject.toml`` cannot state of a build: Rust programs, data, the wheel's tag."""

from __future__ import annotations

import platform
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from setuptools import Distribution, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
COPIED = ("labs", "experiments")
"""Folders of which the package has a copy, so that it does without the checkout."""
NOT_COPIED = ("__pycache__", "*.pyc", "knotless_experiments", "tests")


class Build(build_py):
    """Build the Rust programs first, so that they are part of the package."""

    def run(self) -> None:
        """Build, and add copies of the folders that users read."""
        profile = ["--setup"] if self.editable_mode else []
        subprocess.run([ROOT / "tools" / "native.sh", *profile], check=True)
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)  # files that are gone by now
        super().run()
        if self.editable_mode:
            return
        shutil.copy(ROOT / "tools" / "compat" / "knotless_controller.pth", self.build_lib)
        for name in COPIED:
            target = Path(self.build_lib, "knotless", "_data", name)
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns(*NOT_COPIED))


class Wheel(bdist_wheel):
    """One wheel for all versions of Python from 3.11 on: the extension uses the stable ABI."""

    def finalize_options(self) -> None:
        """Set the tag."""
        super().finalize_options()
        self.root_is_pure = False
        self.py_limited_api = "cp311"

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag: any Python from 3.11 on, and this C library (PEP 600) or a newer one."""
        _, version = platform.libc_ver()
        libc = "_".join(version.split(".")[:2])
        return ("cp311", "abi3", f"manylinux_{libc}_{platform.machine()}")


class Binary(Distribution):
    """A distribution with programs for one architecture."""

    def has_ext_modules(self) -> bool:
        """Have the files installed where those of an architecture belong."""
        return True


commands: dict[str, Any] = {"build_py": Build, "bdist_wheel": Wheel}
manuals = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/man/*.1"))
cargo = tomllib.loads((ROOT / "core" / "Cargo.toml").read_text(encoding="utf-8"))
setup(
    version=cargo["workspace"]["package"]["version"],
    cmdclass=commands,
    distclass=Binary,
    # The types of the extension are a folder without a module.
    packages=[
        *find_packages(include=["knotless", "knotless.*"]),
        "knotless._core",
        *find_packages("experiments", include=["knotless_experiments*"]),
    ],
    package_dir={"knotless_experiments": "experiments/knotless_experiments"},
    data_files=[("share/man/man1", manuals)],
)
