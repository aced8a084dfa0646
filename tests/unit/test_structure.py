"""The structure of the sources: the names at the top level, and the direction of imports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.support import REPOSITORY

PACKAGE = REPOSITORY / "knotless"
TOP_LEVEL = {
    *("controller", "topologies", "experiments", "knotless", "core", "tests"),
    *("labs", "docs", "bench", "tools", "bin", "proofs", "ci", ".ci", ".github"),
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CITATION.cff", "LICENSE"),
    *("Makefile", "Vagrantfile", "Dockerfile", "pyproject.toml", "setup.py", "MANIFEST.in"),
    *("requirements.txt", "requirements-dev.txt", "constraints.txt", "mkdocs.yml"),
    "requirements.lock",
    *(".gitignore", ".dockerignore", ".pre-commit-config.yaml"),
}
"""Names at the top level: a folder of code belongs into the package."""
GENERATED = {"target", "build", "results", "node_modules"}
COMMENT = re.compile(r"//.*")
REFERENCE = re.compile(r"\b(crate|(?:super::)*super)((?:::\w+)+|::(?=\{))")
IN_BRACES = re.compile(r"\b((?:crate|super)(?:::\w+)*)::\{([^;]*?)\};", re.DOTALL)


Module = tuple[str, ...]


@cache
def sources() -> list[Path]:
    """Return every Rust, Python and TypeScript source file, except in generated folders."""
    paths: list[Path] = []
    for folder, inner, files in os.walk(REPOSITORY):
        inner[:] = [name for name in inner if name[0] != "." and name not in GENERATED]
        paths += [Path(folder, name) for name in files if name.endswith((".rs", ".py", ".ts"))]
    return sorted(paths)


@cache
def crate_folders() -> dict[str, Path]:
    """Return the folder of each crate by its name."""
    core = REPOSITORY / "core"
    files = [*core.glob("*/Cargo.toml"), *core.glob("messages/*/Cargo.toml")]
    return {path.parent.name: path.parent for path in files}


def crates() -> list[str]:
    """Return the folder names of all crates."""
    return sorted(crate_folders())


def modules(crate: str) -> dict[Module, str]:
    """Return the text of each module of a crate, by its path below `crate`."""
    folder = crate_folders()[crate] / "src"
    texts: dict[Module, str] = {}
    for path in sources():
        if path.suffix != ".rs" or not path.is_relative_to(folder):
            continue
        parts = path.relative_to(folder).with_suffix("").parts
        if parts[0] == "bin":
            continue
        name = parts[:-1] if parts[-1] in {"mod", "lib", "main"} else parts
        texts[name] = COMMENT.sub("", path.read_text(encoding="utf-8"))
    return texts


def references(module: Module, text: str) -> Iterable[Module]:
    """Return the paths that a module names by `crate::` or `super::`."""
    for start, inner in IN_BRACES.findall(text):
        for item in re.split(r"[,{}\s]+", inner):
            text += f"\n{start}::{item}" if item and item != "self" else ""
    for start, rest in REFERENCE.findall(text):
        base = () if start == "crate" else module[: len(module) - start.count("super")]
        yield (*base, *(part for part in rest.split("::") if part))


def sibling_imports(texts: Mapping[Module, str]) -> dict[Module, set[Module]]:
    """Return the imports between modules of the same folder, each with all modules below it.

    A module may import its own parent, as its functions continue the parent's types.
    """
    siblings: dict[Module, set[Module]] = {}
    for module, text in texts.items():
        for reference in references(module, text):
            shared = 0
            while module[shared : shared + 1] == reference[shared : shared + 1] != ():
                shared += 1
            near, sibling = module[: shared + 1], reference[: shared + 1]
            differ = len(near) == len(sibling) == shared + 1
            if differ and any(name[: shared + 1] == sibling for name in texts):
                siblings.setdefault(near, set()).add(sibling)
    return siblings


def reachable(start: Module, imports: Mapping[Module, set[Module]]) -> set[Module]:
    """Return the modules that `start` imports, directly or not."""
    reached: set[Module] = set()
    waiting = [start]
    while waiting:
        new = imports.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def cycles(texts: Mapping[Module, str]) -> set[frozenset[str]]:
    """Return the sets of modules that import each other in a circle."""
    imports = sibling_imports(texts)
    reach = {module: reachable(module, imports) for module in imports}
    circular = [module for module in imports if module in reach[module]]
    return {
        frozenset("::".join(other) for other in reach[module] if module in reach.get(other, set()))
        for module in circular
    }


def test_the_top_level_has_what_users_run_and_the_package() -> None:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listed, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert {path.partition("/")[0] for path in done.stdout.splitlines()} <= TOP_LEVEL


def test_imports_of_python_run_downwards_only() -> None:
    lint_imports = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint_imports, "--no-cache"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("crate", crates())
def test_modules_do_not_import_each_other_in_a_circle(crate: str) -> None:
    assert cycles(modules(crate)) == set()


def test_a_circle_is_found() -> None:
    first = {("a",): "use crate::b::{X, deep::Y};", ("b",): "use super::c;", ("c", "d"): ""}
    assert cycles(first) == set()
    assert cycles({**first, ("c", "d"): "use crate::a;"}) == {frozenset({"a", "b", "c"})}
    nested = {("p",): "", ("p", "a"): "use super::b::X;", ("p", "b"): "crate::p::{Z, a::Y};"}
    assert cycles(nested) == {frozenset({"p::a", "p::b"})}


CONTROLLER = PACKAGE / "controller"


def imports(path: Path, module: str) -> bool:
    """Tell whether a file of Python imports a module, or what is below it."""
    pattern = rf"^\s*(?:from|import) {re.escape(module)}\b"
    return re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE) is not None


def test_only_the_adapter_and_the_runtime_import_ryu() -> None:
    importing = [
        path for path in sources() if path.is_relative_to(PACKAGE) and imports(path, "ryu")
    ]
    assert CONTROLLER / "app.py" in importing
    runtime = str(CONTROLLER / "runtime")
    others = [path for path in importing if not str(path).startswith(runtime)]
    assert others == [CONTROLLER / "app.py"]


OUTSIDE = ["eventlet", "ryu.lib", "time", "threading", "socket", "select", "random", "gc"]
WHAT_USERS_WRITE = {"config.py", "rest/api.py", "service.py", "openflow/tls.py"}
"""Configuration, tokens, fabrics and certificates are read where they are defined."""
BACKGROUND = "updates/worker.py"
FILE_ACCESS = re.compile(
    r"\b(read_text|read_bytes|write_text|write_bytes|write_whole|os\.environ|os\._exit|secrets\.token)"
    r"|\.(exists|is_file|unlink|glob|mkdir|rename|stat)\(|\bopen\(",
)


@pytest.mark.parametrize("module", [*OUTSIDE, "greenlet"])
def test_the_controller_waits_in_its_runtime_only(module: str) -> None:
    allowed = {CONTROLLER / "runtime.py", *(CONTROLLER / "green").glob("*.py")}
    if module in {"threading", "select"}:  # of the other process
        allowed.add(CONTROLLER / BACKGROUND)
    files = {path for path in sources() if path.is_relative_to(CONTROLLER)} - allowed
    assert [path for path in files if imports(path, module)] == []


def test_the_controller_keeps_files_through_its_runtime_only() -> None:
    allowed = {CONTROLLER / name for name in (*WHAT_USERS_WRITE, BACKGROUND, "runtime.py")}
    files = {path for path in sources() if path.is_relative_to(CONTROLLER)} - allowed
    touching = {path for path in files if FILE_ACCESS.search(path.read_text(encoding="utf-8"))}
    assert touching == {CONTROLLER / "probes/paths.py"}  # a method of its own is named so
