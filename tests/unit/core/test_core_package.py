"""The Rust core's Python package: its modules are importable by name, and all are typed."""

import ast
import importlib

import pytest

from knotless.base.package import PACKAGE

FOLDER = PACKAGE / "_core"
MODULES = sorted(path.stem for path in FOLDER.glob("[!_]*.pyi"))


@pytest.mark.parametrize("name", MODULES)
def test_the_types_name_exactly_the_public_objects(name: str) -> None:
    module = importlib.import_module(f"knotless._core.{name}")
    typed = set()
    for part in ast.parse((FOLDER / f"{name}.pyi").read_text()).body:
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            typed.add(part.name)
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            typed.add(part.target.id)
    # Names with an underscore exist in the stub only, not in the module.
    public = {key for key in typed if not key.startswith("_")}
    assert public == {key for key in vars(module) if not key.startswith("_")}
