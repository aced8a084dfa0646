"""The wheel, installed where there is neither a checkout nor a compiler."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.wheel import Environment, build, installed

pytestmark = pytest.mark.deep

MAX_BYTES = 150e6
"""The most that the plain install may take."""
USERS_FILES = ("common", "traffic", "web", "experiments", "controller", "topologies")
"""Names that a user's own files have: they must not be taken for parts of Knotless."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    with installed(tmp_path_factory.mktemp("plain"), wheel) as environment:
        yield environment


def test_it_has_both_packages_for_all_versions_of_python(wheel: Path) -> None:
    assert "-cp311-abi3-manylinux_" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    others = {name.partition("/")[0] for name in names if not name.startswith("knotless-")}
    assert others == {"knotless", "knotless_experiments", "knotless_controller.pth"}
    copied = [name for name in names if name.startswith("knotless/_data/experiments/")]
    assert not [name for name in copied if "/knotless_experiments/" in name or "/tests/" in name]
    assert {"knotless/_core.abi3.so", "knotless/_native/knotless-emulator"} <= set(names)
    built = shutil.which("ocamlopt") is not None
    assert ("knotless/_native/knotless-verify" in names) == built
    assert zipfile.ZipFile(wheel).read("knotless/_native/profile").decode() == "release\n"
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_it_is_small(plain: Environment) -> None:
    assert plain.installed_bytes() < MAX_BYTES


def test_commands_that_need_no_fabric_run(plain: Environment, tmp_path: Path) -> None:
    planned = plain.knotless("plan", "torus,4,4", "--json")
    assert (planned.returncode, json.loads(planned.stdout)["acyclic"]) == (0, True)
    rules = tmp_path / "rules"
    assert plain.knotless("flows", "torus,4,4", "--out", rules).returncode == 0
    checked = plain.knotless("check", rules, "--json")
    assert (checked.returncode, json.loads(checked.stdout)["undelivered"]) == (0, 0)
    simulated = plain.knotless("simulate", "ring,4", "--pattern", "shift:1", "--json")
    assert (simulated.returncode, json.loads(simulated.stdout)["lost_frames"]) == (0, 0)
    advised = plain.knotless("advise", "mesh,3,3", "--json")
    assert advised.returncode == 0, advised.stderr
    labs = plain.knotless("lab-check", "5", "--work", tmp_path, "--files-only")
    assert (labs.returncode, labs.stderr) == (1, "")


def test_files_of_users_are_not_taken_for_parts_of_it(plain: Environment, tmp_path: Path) -> None:
    for name in USERS_FILES:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the file of the user was run')\n")
    program = "import knotless as kn; print(type(kn.plan('torus,4,4')))"
    done = plain.run([plain.folder / "bin/python", "-c", program], tmp_path)
    assert (done.returncode, done.stdout) == (0, "<class 'knotless.notebook.Plan'>\n"), done.stderr
    assert plain.knotless("plan", "ring,4", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("topology ring,4 --draw ring.svg", "matplotlib is not installed: pip install"),
        ("sweep none.yaml --plot x.svg", "none.yaml: cannot be read"),
        ("simulate ring,4 --pattern shift:1 --record x.parquet", "'knotless[results]'"),
        ("replay x.parquet", "'knotless[web]'"),
    ],
)
def test_an_extra_that_is_missing_is_one_line(
    command: str, message: str, plain: Environment, tmp_path: Path
) -> None:
    done = plain.knotless(*command.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert message in done.stderr


def test_the_version_names_the_commit(plain: Environment, wheel: Path) -> None:
    version = wheel.name.split("-")[1]
    commit = zipfile.ZipFile(wheel).read("knotless/_native/commit").decode().strip()
    done = plain.knotless("--version")
    assert done.stdout == f"knotless {version} (commit {commit})\n"


def test_ryu_alone_has_the_hook_loaded(plain: Environment) -> None:
    outputs = []
    for name in ("other-program", "ryu-manager"):
        program = plain.folder / name
        program.write_text("import sys; print('knotless.controller.ryu_compat' in sys.modules)")
        done = subprocess.run(
            [plain.folder / "bin/python", program], capture_output=True, text=True, check=True
        )
        outputs.append(done.stdout.strip())
    assert outputs == ["False", "True"]
