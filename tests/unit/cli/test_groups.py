"""``knotless --help`` without loading commands, suggestions, and completion."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from knotless.base.extras import EXTRAS, extra_of
from knotless.base.plugins import module_names
from knotless.cli.groups import GROUPS, OF_EXPERIMENTS, commands
from knotless.cli.main import main
from knotless.emulation import names as fabric_names
from knotless.routing.engine import engines
from knotless.topologies import load
from knotless.topologies.formats.files import to_text
from knotless.topologies.registry import families

WIDTH = 80


def offered(*words: str, incomplete: str = "") -> list[str]:
    complete = BashComplete(main, {}, "knotless", "_KNOTLESS_COMPLETE")
    return [item.value for item in complete.get_completions(list(words), incomplete)]


def test_the_groups_have_every_command() -> None:
    modules = [name.replace("_", "-") for name in module_names("knotless.cli.commands")]
    assert commands() == sorted([*modules, *OF_EXPERIMENTS])
    assert list(GROUPS) == ["Design", "Judge", "Run", "Operate", "Measure", "Learn"]


def test_the_help_has_a_whole_sentence_for_each_command() -> None:
    shown = CliRunner().invoke(main, ["--help"], terminal_width=WIDTH).output.splitlines()
    for group in GROUPS.values():
        for name, sentence in group.items():
            assert sentence[0].isupper()
            assert sentence.endswith(".")
            assert [name, *sentence.split()] in [line.split() for line in shown]
    assert max(map(len, shown)) <= WIDTH


def test_the_help_loads_no_command() -> None:
    program = (
        "import sys; from click.testing import CliRunner; from knotless.cli.main import main\n"
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0\n"
        "print([name for name in sys.modules if name in ('numpy', 'pydantic', 'rich')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["simulat"], "No such command 'simulat'; did you mean simulate?"),
        (["traffic", "strat"], "No such command 'strat'; did you mean start or status?"),
        (["xyzzy"], "No such command 'xyzzy' (see"),
    ],
)
def test_a_command_that_was_meant_is_named(words: list[str], message: str) -> None:
    done = CliRunner(mix_stderr=False).invoke(main, words, prog_name="knotless")
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str) -> None:
    done = CliRunner().invoke(main, ["completion", shell])
    assert done.exit_code == 0
    assert f"_KNOTLESS_COMPLETE={shell}_complete" in done.output


def test_values_are_completed() -> None:
    assert set(offered(incomplete="top")) == {"top", "topology"}
    assert offered("plan", incomplete="fat") == [n for n in families() if n.startswith("fat")]
    assert set(offered("plan", "ring,4", "--engine")) == {"auto", *engines()}
    assert offered("plan", "ring,4", "--select") == ["spread", "low-port"]
    assert offered("analyse", "ring,4", "--pattern", incomplete="shu") == ["shuffle"]
    assert offered("plan", "ring,4", "--without", incomplete="s1") == ["s1-s2", "s1"]
    assert offered("plan", "nonsense,4", "--without") == []


def test_parts_of_running_fabrics_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fabric_names, "RUN_DIRECTORY", tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / ".nic").mkdir()
    (tmp_path / "mine" / "fabric.json").write_text(to_text(load("ring,3")))
    assert offered("status", "--name") == ["mine"]
    assert offered("cut", "--name", "mine", incomplete="h1") == ["h1-s1"]
    assert offered("drain", "--name", "mine", incomplete="s3") == ["s3-s1", "s3"]
    assert offered("switch", "restart", "--name", "mine", incomplete="s") == ["s1", "s2", "s3"]
    assert offered("exec", "--name", "mine", incomplete="h") == ["h1", "h2", "h3"]
    assert offered("attach", "--name", "mine", incomplete="h1") == ["h1"]
    assert offered("cut") == []  # there is no fabric of the name default


def test_extras_are_known_by_the_module_that_is_missing() -> None:
    assert extra_of(ModuleNotFoundError(name="pyarrow.parquet")) == "results"
    assert extra_of(ModuleNotFoundError(name="no_such_module")) is None
    assert set(EXTRAS.values()) == {"results", "controller", "ryu", "sweeps", "web"}
