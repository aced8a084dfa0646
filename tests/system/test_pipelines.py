"""The steps for pipelines, in an environment that has only Python and the wheel."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import REPOSITORY
from tests.support.wheel import build

CI = REPOSITORY / "ci"
FABRICS = REPOSITORY / "tests" / "data" / "fabrics"


def steps(wheel: str, paths: str, options: str = "") -> list[tuple[str, dict[str, str]]]:
    """Return the commands of the action with their variables, as GitHub expands them."""
    action = yaml.safe_load((CI / "action.yml").read_text())
    given = {"wheel": wheel, "paths": paths, "options": options}
    inputs = {name: given.get(name, of.get("default")) for name, of in action["inputs"].items()}

    def expanded(text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: str(inputs[found[1]]), text)

    return [
        (step["run"], {name: expanded(value) for name, value in step["env"].items()})
        for step in action["runs"]["steps"]
    ]


def job(**variables: str) -> list[tuple[str, dict[str, str]]]:
    """Return the commands of GitLab's job with their variables; all are one script there."""
    template = yaml.safe_load((CI / "gitlab.yml").read_text())[".knotless"]
    lines = ["set -eo pipefail", *template["before_script"], *template["script"]]
    return [("\n".join(lines), {**template["variables"], **variables})]


def run(
    commands: list[tuple[str, dict[str, str]]], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run commands one after the other, until one fails, as pipelines do."""
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    keep = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    for script, variables in commands:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=folder,
            env={
                **keep,
                **variables,
                "PATH": "/usr/bin:/bin",
                "HOME": os.environ["HOME"],
                "RUNNER_TEMP": str(temporary),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            break
    return done


def test_inputs_never_become_a_part_of_a_script() -> None:
    action = (CI / "action.yml").read_text()
    for step in yaml.safe_load(action)["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
    assert set(yaml.safe_load(action)["inputs"]) == {
        "paths",
        "wheel",
        "version",
        "options",
        "results",
    }


@pytest.mark.deep
def test_a_wheel_or_a_version_is_needed(tmp_path: Path) -> None:
    done = run(steps("", "fabric"), tmp_path)
    assert done.returncode
    assert "wheel or version is needed" in done.stderr
    done = run(job(KNOTLESS_PATHS="fabric"), tmp_path)
    assert done.returncode
    assert "KNOTLESS_WHEEL or KNOTLESS_VERSION is needed" in done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build(tmp_path_factory.mktemp("wheel")))


@pytest.mark.deep
@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_the_steps_judge_fabrics(tmp_path: Path, service: str, wheel: str) -> None:
    folder = tmp_path / "work"
    shutil.copytree(FABRICS / "control-safe", folder / "a fabric")
    shutil.copytree(FABRICS / "control-knot", folder / "knot")

    def commands(paths: str, options: str = "") -> list[tuple[str, dict[str, str]]]:
        if service == "github":
            return steps(wheel, paths, options)
        return job(KNOTLESS_WHEEL=wheel, KNOTLESS_PATHS=paths, KNOTLESS_OPTIONS=options)

    safe = run(commands("a fabric\n"), folder)
    assert safe.returncode == 0, safe.stderr
    assert "cannot deadlock" in safe.stdout
    knot = run(commands("knot"), folder)
    assert knot.returncode, knot.stdout
    results = folder / "knotless-results"
    found: dict[str, Any] = json.loads((results / "knotless.sarif").read_text())
    (one,) = found["runs"][0]["results"]
    assert one["ruleId"] == "deadlock"
    assert "<failure" in (results / "knotless.xml").read_text()
    known = {"finding": one["partialFingerprints"]["finding/v1"], "reason": "a test"}
    (folder / "accepted.yaml").write_text(json.dumps([{**known, "until": "2999-12-31"}]))
    accepted = run(commands("\nknot\n", "--accept accepted.yaml"), folder)
    assert accepted.returncode == 0, accepted.stderr
