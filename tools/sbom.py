"""``python tools/sbom.py OUTPUT``: the software bill of materials of a release, as CycloneDX 1.5.

It lists what a release is installed with and built from: the packages of Python in
``requirements.lock``, of which those of tests are optional, and the crates in ``core/Cargo.lock``.

References
----------
OWASP, CycloneDX specification 1.5 (ECMA-424); package-url specification.

"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_ENTRY = re.compile(r"([A-Za-z0-9][\w.-]*)==(\S+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def python_packages(lock: str) -> Iterator[dict[str, Any]]:
    """Yield a component for each package of a lock, in its order; raises ValueError."""
    part, seen = "", set[str]()
    component: dict[str, Any] | None = None
    for number, line in enumerate(lock.splitlines(), 1):
        entry = _ENTRY.match(line)
        if line.startswith("# part: "):
            part = line.removeprefix("# part: ")
        elif entry is not None:
            if component is not None:
                yield component
            component = None
            name, version = entry[1].lower().replace("_", "-"), entry[2]
            purl = f"pkg:pypi/{name}@{version}"
            if purl not in seen:
                seen.add(purl)
                component = _component(name, version, purl, "optional" * (part == "tests"))
                files = {
                    "type": "distribution",
                    "url": f"https://pypi.org/project/{name}/{version}/",
                }
                component["externalReferences"] = [{**files, "hashes": []}]
        elif hashed := _HASH.search(line):
            if component is not None:
                hashes = component["externalReferences"][0]["hashes"]
                hashes.append({"alg": "SHA-256", "content": hashed[1]})
        elif line.strip() and not line.startswith("#"):
            raise ValueError(f"requirements.lock, line {number}: neither a package nor a hash")
    if component is not None:
        yield component


def crates(lock: str) -> Iterator[dict[str, Any]]:
    """Yield a component for each crate of a Cargo.lock that is not ours."""
    for package in tomllib.loads(lock)["package"]:
        if "source" in package:
            name, version = package["name"], package["version"]
            component = _component(name, version, f"pkg:cargo/{name}@{version}")
            component["hashes"] = [{"alg": "SHA-256", "content": package["checksum"]}]
            yield component


def _component(name: str, version: str, purl: str, scope: str = "") -> dict[str, Any]:
    values = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    return {**values, "scope": scope or "required"}


def bom(root: Path = ROOT) -> dict[str, Any]:
    """Return the bill of materials of a checkout; equal inputs give equal ones."""
    cargo = tomllib.loads((root / "core" / "Cargo.toml").read_text(encoding="utf-8"))
    version = cargo["workspace"]["package"]["version"]
    components = [
        *python_packages((root / "requirements.lock").read_text(encoding="utf-8")),
        *crates((root / "core" / "Cargo.lock").read_text(encoding="utf-8")),
    ]
    ours = _component("knotless", version, f"pkg:pypi/knotless@{version}")
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([ours, components]))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
        "metadata": {"component": {**ours, "type": "application"}},
        "components": components,
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(bom(), indent=1) + "\n", encoding="utf-8")
