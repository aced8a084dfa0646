"""tools/demo.sh: with which of what is there it shows the main job."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.support import REPOSITORY

ACCEPTED = (
    "demo: a checker that is proven in Coq has accepted the rules of ring,4 with the routes that"
    " cannot deadlock"
)
SIMULATED = "run deadlock --quick --on simulation --out results"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with the script alone; set-up fails, and no namespace can be made."""
    (tmp_path / "tools").mkdir()
    shutil.copy(REPOSITORY / "tools/demo.sh", tmp_path / "tools")
    program(tmp_path / "tools/setup.sh", "exit 1")
    program(tmp_path / "bin/unshare", "exit 1")
    program(tmp_path / "bin/sudo", '[ "$1" != -n ] || shift; exec "$@"')
    return tmp_path


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def demo(checkout: Path) -> tuple[int, list[str]]:
    """Run the script; return its exit status and the lines that it has printed."""
    done = subprocess.run(
        [checkout / "tools/demo.sh"],
        env={
            "PATH": f"{checkout / 'bin'}:/usr/bin:/bin",
            "HOME": str(checkout),
            "TMPDIR": str(checkout),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_fabrics_come_first(checkout: Path) -> None:
    for name in ("tools/setup.sh", "bin/unshare", ".venv/bin/python"):
        program(checkout / name, "exit 0")
    program(checkout / ".venv/bin/knotless", 'echo "$@"')
    assert demo(checkout) == (0, ["run deadlock", ACCEPTED])


@pytest.mark.parametrize(
    ("said", "status", "line"),
    [
        ("knotless: knotless-verify is not built: run ..", 0, "with apt-get install ocaml-nox, "),
        ("refused: a hash", 1, "ring,4 with the routes that cannot deadlock: refused: a hash"),
    ],
)
def test_a_verifier_that_does_not_accept(checkout: Path, said: str, status: int, line: str) -> None:
    for name in ("tools/setup.sh", "bin/unshare", ".venv/bin/python"):
        program(checkout / name, "exit 0")
    program(checkout / ".venv/bin/knotless", f'[ "$1" != verify ] || {{ echo "{said}"; exit 2; }}')
    found, lines = demo(checkout)
    assert (found, len(lines)) == (status, 1)
    assert lines[0].startswith(f"demo: {line}")


def test_an_environment_simulates_where_fabrics_cannot_run(checkout: Path) -> None:
    program(
        checkout / ".venv/bin/python",
        'case "$*" in *requirements) echo "needs root"; exit 1;; *deadlock*) shift 3; echo "$@";; '
        "esac",
    )
    status, lines = demo(checkout)
    assert (status, lines[:2]) == (0, [SIMULATED, ACCEPTED])
    assert lines[2].endswith("with real frames on Open vSwitch it needs root")
    program(checkout / "bin/unshare", "exit 0")  # rights, and a set-up that fails
    assert demo(checkout) == (0, lines)


def test_a_wheel_simulates_without_being_installed(checkout: Path) -> None:
    (checkout / "dist").mkdir()
    files = ["knotless/__init__.py", "knotless/_core.py", "knotless/emulation/requirements.py"]
    files += ["knotless_experiments/commands/run.py", "jinja2.py", "matplotlib.py", "pyarrow.py"]
    with zipfile.ZipFile(checkout / "dist/knotless-1-py3-none-any.whl", "w") as wheel:
        for file in files:
            wheel.writestr(file, "")
        wheel.writestr("knotless/__main__.py", "import sys; print(*sys.argv[1:])")
    status, lines = demo(checkout)
    assert (status, lines[:2]) == (0, [SIMULATED, ACCEPTED])
    assert lines[2].endswith("on Open vSwitch it needs what tools/setup.sh installs")


def test_nothing_that_can_run_is_said_in_one_line(checkout: Path) -> None:
    assert demo(checkout) == (
        2,
        [
            "demo: nothing of Knotless can run here: run it as root, put a wheel into dist/, or"
            " install Rust (cargo)"
        ],
    )
    assert not list(checkout.glob("tmp.*"))
