"""Properties of the set-up script that can be checked without setting up a machine."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support import REPOSITORY

SCRIPTS = [
    *("tools/setup.sh", "tools/coverage.sh", "tools/make", "tools/demo.sh", ".ci/run"),
    *("tools/lab-image.sh", "tools/lab-install.sh", "tools/native.sh", "tools/rust-tests.sh"),
    "tools/verifier.sh",
]


def test_ryu_runs_unedited_with_an_eventlet_that_lacks_a_name() -> None:
    program = (
        "import eventlet.wsgi, ryu.app.wsgi, inspect;"
        "assert eventlet.wsgi.ALREADY_HANDLED == ();"
        "assert 'ALREADY_HANDLED' not in inspect.getsource(eventlet.wsgi)"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)


def test_the_import_hook_is_there_once_and_minds_no_other_module() -> None:
    program = (
        "import sys, knotless_ryu_compat as compat; compat.install(); compat.install();"
        "hooks = [f for f in sys.meta_path if isinstance(f, compat.AlreadyHandledFinder)];"
        "assert len(hooks) == 1, hooks;"
        "assert hooks[0].find_spec('json', None) is None"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_make_help_lists_the_targets() -> None:
    done = subprocess.run(
        ["make", "help"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    targets = [line.split()[1] for line in done.stdout.splitlines()]
    assert {"setup", "demo", "test", "lint", "format", "bench", "clean"} <= set(targets)


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_runnable_and_parse(script: str) -> None:
    path = REPOSITORY / script
    assert path.stat().st_mode & 0o111
    interpreter = path.read_text().splitlines()[0].removeprefix("#!").split()
    subprocess.run([*interpreter, "-n", path], check=True)


def test_an_unknown_stage_is_refused_before_anything_is_installed() -> None:
    done = subprocess.run(
        ["tools/setup.sh", "--test"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert done.stderr.startswith("setup: unknown option --test: ")


NAME = re.compile(r"[\w.-]+")


def lines(file: str) -> list[str]:
    """Return the lines of a file of requirements that name a package."""
    return [line for line in (REPOSITORY / file).read_text().splitlines() if line[:1] not in "#"]


def required(file: str) -> set[str]:
    """Return the names of a file of requirements; versions are in constraints.txt alone."""
    assert all(NAME.fullmatch(line) for line in lines(file))
    return set(lines(file))


def test_what_users_run_imports_no_package_that_only_tests_need() -> None:
    names = {name.replace("-", "_") for name in required("requirements-dev.txt")}
    assert {"pytest", "hypothesis", "coverage"} <= names
    paths = [path for part in ("knotless", "bench") for path in (REPOSITORY / part).rglob("*.py")]
    assert REPOSITORY / "knotless" / "__init__.py" in paths
    for path in paths:
        imported = re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
        assert not names.intersection(imported), path


OUTSIDE_OF_A_CHECKOUT = {"notebooks", "graphs", "frames"}
"""Extras that no command needs."""


def test_the_requirements_are_the_dependencies_of_the_package() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for_running = [name for name in extras if name not in OUTSIDE_OF_A_CHECKOUT]
    wanted = {
        NAME.match(line)[0]  # type: ignore[index]
        for line in (*project["dependencies"], *(line for n in for_running for line in extras[n]))
    }
    assert wanted - {"knotless"} == required("requirements.txt")


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-dev.txt"])
def test_constraints_pin_every_requirement(file: str) -> None:
    pinned = {line.split("==")[0] for line in lines("constraints.txt") if "==" in line}
    assert required(file) <= pinned


def test_the_packages_that_running_needs_are_listed_without_installing_any() -> None:
    done = subprocess.run(
        ["tools/setup.sh", "--packages"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    packages = done.stdout.split()
    assert {"openvswitch-switch", "mininet", "socat", "python3-venv", "rustc-web"} <= set(packages)
    assert len(packages) == len(set(packages))


def test_tests_do_without_what_only_fabrics_need_where_nothing_can_be_installed(
    tmp_path: Path,
) -> None:
    for name in ("tools/setup.sh", "core/Cargo.toml"):
        (tmp_path / name).parent.mkdir()
        shutil.copy(REPOSITORY / name, tmp_path / name)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "dirname", "sed", "tr", "id", "sort", "head", "awk", "rustc", "grep"):
        (programs / name).symlink_to(shutil.which(name) or "/bin/false")
    done = subprocess.run(
        [tmp_path / "tools/setup.sh", "--tests"],
        env={"PATH": str(programs), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    without = re.fullmatch(r"setup: may not install (.*): tests with fabrics .*\n", done.stdout)
    assert without is not None, done
    assert {"iperf3", "socat", "openmpi-bin"} <= set(without[1].split())
    missing = re.match(r"setup: missing: (.*) \(Debian package names\)", done.stderr)
    assert missing is not None, done.stderr
    assert "gcc" in missing[1].split()
    assert set(missing[1].split()).isdisjoint(without[1].split())


def test_an_unknown_option_of_lab_image_is_refused() -> None:
    done = subprocess.run(
        ["tools/lab-image.sh", "--all"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.split(":")[:2]) == (
        1,
        ["lab-image", " unknown option --all"],
    )


def test_the_box_of_the_virtual_machine_is_pinned() -> None:
    text = (REPOSITORY / "Vagrantfile").read_text()
    assert re.search(r'^ *config\.vm\.box_version = "\d+\.\d+\.\d+"$', text, re.MULTILINE)


def test_the_virtual_machine_keeps_what_was_written_inside() -> None:
    text = (REPOSITORY / "Vagrantfile").read_text()
    (arguments,) = re.findall(r"^ *rsync__args: \[(.*)\],$", text, re.MULTILINE)
    options = re.findall(r'"([^"]+)"', arguments)
    assert {"--archive", "--update"} <= set(options)
    assert not [option for option in options if "delete" in option]


def test_a_copy_as_the_virtual_machine_makes_it_keeps_work(tmp_path: Path) -> None:
    if shutil.which("rsync") is None:
        pytest.skip("rsync is not installed")
    text = (REPOSITORY / "Vagrantfile").read_text()
    (arguments,) = re.findall(r"^ *rsync__args: \[(.*)\],$", text, re.MULTILINE)
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    (outside / "sheet").write_text("outside")
    (outside / "page").write_text("old")
    copy = ["rsync", *re.findall(r'"([^"]+)"', arguments), f"{outside}/", f"{inside}/"]
    subprocess.run(copy, check=True, capture_output=True)
    (inside / "sheet").write_text("a student's")
    (inside / "work").write_text("new")
    for path, time_s in ((inside / "sheet", 2e9), (outside / "page", 2e9)):
        os.utime(path, (time_s, time_s))
    (outside / "page").write_text("of the next release")
    subprocess.run(copy, check=True, capture_output=True)
    kept = {path.name: path.read_text() for path in inside.iterdir()}
    assert kept == {"sheet": "a student's", "work": "new", "page": "of the next release"}


def test_ports_of_the_virtual_machine_are_open_on_the_loopback_only() -> None:
    text = (REPOSITORY / "Vagrantfile").read_text()
    forwarded = [line for line in text.splitlines() if '"forwarded_port"' in line]
    assert forwarded
    assert all('host_ip: "127.0.0.1"' in line for line in forwarded)
    page = re.search(r"127\.0\.0\.1:(\d+)/", (REPOSITORY / "docs/web.md").read_text())
    assert page is not None
    assert page[1] in re.findall(r"\d+", text.split(".each do |port|")[0].splitlines()[-1])


@pytest.mark.long
@pytest.mark.skipif(shutil.which("vagrant") is None, reason="vagrant is not installed")
def test_the_vagrantfile_is_valid(tmp_path: Path) -> None:
    done = subprocess.run(
        ["vagrant", "validate", "--ignore-provider"],
        cwd=REPOSITORY,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "VAGRANT_HOME": str(tmp_path / "v")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr or done.stdout
