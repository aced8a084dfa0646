"""Which files of tests a change can reach, and over how many imports.

An edge leads from what is used to what uses it: modules of Python (imports, and names of modules
and packages in strings, by which plug-ins and programs are found), crates, the modules of
``knotless._core`` and the programs that are built of them, and other files by their names in tests.
"""

from __future__ import annotations

import ast
import subprocess
import tomllib
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from tests.support import REPOSITORY
from tests.tiers.depth import ROOTS as TEST_ROOTS

ROOTS = ("knotless", "tests", "bench", "controller", "topologies", "experiments", "docs")
"""Folders with code of Python that tests use."""
COMMAND, COMMAND_MODULE = "knotless", "knotless.cli.main"
"""What tests call as a program, and the module that it starts."""
EXPERIMENTS = PurePosixPath("experiments/knotless_experiments")
"""A package whose name begins below its folder."""
TESTS = tuple(f"{root.replace('/', '.')}." for root in TEST_ROOTS)
_BINDINGS = PurePosixPath("core/python/src")


def _git(*words: str) -> str | None:
    done = subprocess.run(
        ["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else None


def changed_files(base: str | None = None) -> tuple[set[str], str] | None:
    """Return the files that differ from a base, and which that is; None if git knows none.

    Without ``base`` it is what the branch began from: where it left its upstream or ``main``; on
    ``main`` itself, or where neither is known, the last commit but one.
    """
    head = _git("rev-parse", "HEAD")
    if head is None:
        return None
    for candidate in (base,) if base else ("@{upstream}", "origin/main", "main", "HEAD~1"):
        found = _git("merge-base", "HEAD", candidate)
        if found is None or (found == head and base is None):
            continue
        listed = _git("diff", "--name-only", "--no-renames", found.strip())
        new = _git("ls-files", "--others", "--exclude-standard")
        return {*(listed or "").splitlines(), *(new or "").splitlines()}, found[:10]
    return None


def module_of(path: PurePosixPath) -> str:
    """Return the name of the module in a file of Python."""
    if path.is_relative_to(EXPERIMENTS):
        path = path.relative_to(EXPERIMENTS.parent)
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _strings(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield strings; of ``f"knotless.a.{name}"`` the beginning.

    Where a module is imported by a name that begins with a variable, that is the ``package``.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.rstrip(".")
        elif isinstance(node, ast.Call) and _name_of(node.func) == "import_module":
            for name in node.args[:1]:
                if isinstance(name, ast.JoinedStr) and not isinstance(name.values[0], ast.Constant):
                    yield package


def _name_of(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def is_of_tests(file: str) -> bool:
    """Tell whether a file is in a folder of tests."""
    return file.startswith(tuple(f"{root}/" for root in TEST_ROOTS))


class Graph:
    """What uses what in a checkout; ``tracked`` are the paths of its files."""

    def __init__(self, tracked: Iterable[str], root: Path = REPOSITORY) -> None:
        self._root = root
        self._users: dict[str, set[str]] = defaultdict(set)
        paths = [PurePosixPath(name) for name in tracked]
        self._modules = {
            module_of(path): str(path)
            for path in paths
            if path.suffix == ".py" and path.parts[0] in ROOTS
        }
        for path in paths:
            if path.suffix == ".pyi":
                self._modules[module_of(path)] = str(path)
        self._others: Mapping[str, list[str]] = self._by_name(paths)
        self._programs = set[str]()
        self._read_crates(paths)
        for module, file in self._modules.items():
            if file.endswith(".py"):
                self._read_module(module, file)
        for module, file in self._modules.items():
            if PurePosixPath(file).name == "conftest.py":
                folder = module.rpartition(".")[0] + "."
                self._users[module] |= {each for each in self._modules if each.startswith(folder)}

    @staticmethod
    def _by_name(paths: Iterable[PurePosixPath]) -> Mapping[str, list[str]]:
        named: dict[str, list[str]] = defaultdict(list)
        for path in paths:
            if path.suffix not in (".py", ".pyi", ".rs"):
                named[path.name].append(str(path))
        return named

    def _read_module(self, module: str, file: str) -> None:
        is_package = file.endswith("/__init__.py")
        tree = ast.parse((self._root / file).read_text(encoding="utf-8"))
        for name in _imports(tree):
            self._use(name, module)
        if module.startswith(TESTS) and COMMAND in _strings(tree, ""):
            self._users[COMMAND_MODULE].add(module)
        for name in _strings(tree, module if is_package else module.rpartition(".")[0]):
            if module.startswith(TESTS):
                for other in self._others.get(name.rpartition("/")[2], ()):
                    self._users[other].add(module)
            if name in self._programs:
                self._users[name].add(module)
            elif "." not in name:
                continue
            self._use(name, module)
            if self._modules.get(name, "").endswith("/__init__.py"):
                for each in self._modules:  # plug-ins
                    if each.startswith(f"{name}."):
                        self._users[each].add(module)

    def _use(self, name: str, user: str) -> None:
        """Note that a module is used by the name of something in it."""
        while name and name not in self._modules:
            name = name.rpartition(".")[0]
        if name and name != user:
            self._users[name].add(user)

    def _read_crates(self, paths: Iterable[PurePosixPath]) -> None:
        listed = list(paths)
        manifests = [p for p in listed if p.name == "Cargo.toml" and p.parts[0] == "core"]
        self._crates = {str(path.parent): "" for path in manifests if len(path.parts) > 2}
        for manifest in manifests:
            text = (self._root / manifest).read_text(encoding="utf-8")
            about = tomllib.loads(text)
            if "package" not in about:
                continue
            folder = str(manifest.parent)
            self._crates[folder] = name = about["package"]["name"].replace("-", "_")
            for used in about.get("dependencies", {}).values():
                if isinstance(used, dict) and "path" in used:
                    target = (self._root / manifest.parent / used["path"]).resolve()
                    self._users[str(target.relative_to(self._root.resolve()))].add(folder)
            built = {binary["name"] for binary in about.get("bin", ())}
            if "cdylib" in about.get("lib", {}).get("crate-type", ()):
                built.add(f"lib{about['lib']['name']}.so")
            self._users[folder] |= built
            self._programs |= built
        for path in listed:
            if path.is_relative_to(_BINDINGS) and path.suffix == ".rs":
                self._users[_binding(_BINDINGS / "lib.rs")].add(_binding(path))
                text = (self._root / path).read_text(encoding="utf-8")
                for folder, name in self._crates.items():
                    if f"{name}::" in text:
                        self._users[folder].add(_binding(path))

    def _node(self, file: str) -> str:
        """Return what a file is part of."""
        path = PurePosixPath(file)
        if path.is_relative_to(_BINDINGS):
            return _binding(path)
        if path.suffix in (".py", ".pyi"):
            return module_of(path)
        within = [folder for folder in self._crates if path.is_relative_to(folder)]
        return max(within, key=len, default=file)

    def tests_reached(self, files: Iterable[str]) -> dict[str, int]:
        """Return the files of tests that use these files, and over how many steps: 0 is itself."""
        steps = {self._node(file): 0 for file in files}
        queue = deque(steps)
        while queue:
            node = queue.popleft()
            for user in sorted(self._users.get(node, ())):
                if user not in steps:
                    steps[user] = steps[node] + 1
                    queue.append(user)
        found = {
            self._modules[node]: count for node, count in steps.items() if node in self._modules
        }
        return {
            file: count
            for file, count in found.items()
            if is_of_tests(file) and PurePosixPath(file).name.startswith("test_")
        }


def _binding(path: PurePosixPath) -> str:
    """Return the module of Python that a file of the border defines."""
    first = path.relative_to(_BINDINGS).parts[0]
    return f"knotless._core.{first.removesuffix('.rs')}"


def tracked() -> list[str]:
    """Return the files of the checkout, new ones included."""
    listed = _git("ls-files", "--cached", "--others", "--exclude-standard") or ""
    return [file for file in listed.splitlines() if (REPOSITORY / file).is_file()]


def of_checkout() -> Graph:
    """Return what uses what here."""
    return Graph(tracked())
