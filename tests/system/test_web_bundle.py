"""The committed bundle of the page is what its sources and locked packages give."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import REPOSITORY

WEB = REPOSITORY / "knotless" / "web"
PAGE, STATIC = WEB / "page", WEB / "static"
BUILT = ("app.js", "replay.js", "licences.txt", "sources.sha256")


def test_the_bundle_was_built_from_these_sources() -> None:
    sources = sorted(f"src/{path.name}" for path in (PAGE / "src").iterdir())
    digest = hashlib.sha256()
    for file in ["build.mjs", "package-lock.json", "package.json", *sources]:
        digest.update(f"{file}\0".encode() + (PAGE / file).read_bytes())
    recorded = (STATIC / "sources.sha256").read_text().strip()
    assert digest.hexdigest() == recorded, "run 'make page' and commit knotless/web/static"


def test_every_package_is_locked_with_a_hash_and_an_allowed_licence() -> None:
    lock = json.loads((PAGE / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert {"node_modules/sigma", "node_modules/graphology"} <= packages.keys()
    for name, entry in packages.items():
        assert entry["integrity"].startswith("sha512-"), name
        # Without an address, npm asks the registry that its user has configured.
        assert entry.get("resolved", "https://registry.npmjs.org/").startswith(
            "https://registry.npmjs.org/"
        ), name
        if not entry.get("dev") and not entry.get("peer"):
            assert entry["license"] in {"MIT", "ISC", "Apache-2.0", "BSD-3-Clause"}, name


def test_licence_texts_of_all_packages_in_the_bundle_are_there() -> None:
    text = (STATIC / "licences.txt").read_text(encoding="utf-8")
    for package in ("sigma", "graphology", "graphology-utils", "events", "@sigma/edge-curve"):
        assert re.search(rf"^{package} [\d.]+ \(MIT\)$", text, re.MULTILINE), package
    assert text.count("Permission is hereby granted, free of charge") == 5


@pytest.mark.deep
def test_the_bundle_is_rebuilt_byte_for_byte(tmp_path: Path) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("needs npm")
    page = tmp_path / "page"
    shutil.copytree(PAGE, page, ignore=shutil.ignore_patterns("node_modules"))
    install = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    installed = subprocess.run(install, cwd=page, capture_output=True, text=True, check=False)
    if installed.returncode != 0:
        pytest.skip(f"npm ci has failed: {installed.stderr.strip().splitlines()[-1:]}")
    subprocess.run([node, "build.mjs", tmp_path / "out"], cwd=page, check=True)
    subprocess.run([node, "node_modules/typescript/bin/tsc", "--noEmit"], cwd=page, check=True)
    for name in BUILT:
        assert (tmp_path / "out" / name).read_bytes() == (STATIC / name).read_bytes(), name
