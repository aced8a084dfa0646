"""When the scripts around ``core/`` compile and test, and when they have nothing to do."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import REPOSITORY

CARGO = """#!/bin/bash
echo "$KNOTLESS_TIER $*" >>calls
[ ! -e broken ] || exit 1
while [ "$1" != --profile ]; do shift; done
mkdir -p core/target/$2
for file in knotless-emulator knotless-barrier knotless-pingpong lib_core.so \\
    libknotless_virtual_time.so libknotless_endpoint.so; do
    echo "$2" >core/target/$2/$file
done
"""
PROGRAMS = {
    "cargo": CARGO,
    "rustc": "#!/bin/sh\ncat compiler\n",
    "strip": '#!/bin/sh\ncp "$3" "$2"\n',
    "ocamlopt": "#!/bin/sh\ncat checker.ml *.ml >knotless-verify\n",
}


class Checkout:
    """A checkout with these scripts, one source file, and a Cargo that only notes its calls."""

    def __init__(self, root: Path) -> None:
        self.root = root
        header = Path("core/messages/endpoint/include/knotless_endpoint.h")
        for folder in ("tools", "tests", "bin", "core/src", header.parent, "proofs/verifier"):
            (root / folder).mkdir(parents=True)
        for script in ("native.sh", "rust-tests.sh", "verifier.sh"):
            shutil.copy(REPOSITORY / "tools" / script, root / "tools")
        for name, text in PROGRAMS.items():
            (root / "bin" / name).write_text(text)
            (root / "bin" / name).chmod(0o755)
        (root / header).write_text("")
        (root / "proofs/checker.ml").write_text("")
        (root / "proofs/verifier/main.ml").write_text("first")
        (root / "core/src/lib.rs").write_text("")
        (root / "tests/SEED").write_text("0\n")
        (root / "compiler").write_text("rustc 1\n")

    def run(self, script: str, *arguments: str, ok: bool = True, **variables: str) -> str:
        """Run a script; returns what it printed and the calls of Cargo, a line each."""
        calls = self.root / "calls"
        calls.write_text("")
        path = f"{self.root / 'bin'}:/usr/bin:/bin"
        kept = {name: os.environ[name] for name in ("HOME",) if name in os.environ}
        done = subprocess.run(
            [self.root / "tools" / script, *arguments],
            env={**kept, "PATH": path, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode == 0) == ok, done.stdout
        return done.stdout + calls.read_text()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


SKIPPED = "rust-tests: core/ has not changed since its tests passed (gate)\n"
TESTED = "gate test --locked --quiet --profile gate --manifest-path core/Cargo.toml\n"


def test_tests_that_have_passed_run_again_only_if_something_changed(checkout: Checkout) -> None:
    assert checkout.run("rust-tests.sh") == TESTED
    assert checkout.run("rust-tests.sh") == SKIPPED
    (checkout.root / "core/target/gate/other").write_text("what Cargo builds is no source")
    assert checkout.run("rust-tests.sh") == SKIPPED

    (checkout.root / "core/src/lib.rs").write_text("// edited")
    assert checkout.run("rust-tests.sh") == TESTED
    (checkout.root / "core/src/lib.rs").rename(checkout.root / "core/src/moved.rs")
    assert checkout.run("rust-tests.sh") == TESTED
    (checkout.root / "compiler").write_text("rustc 2\n")
    assert checkout.run("rust-tests.sh") == TESTED
    assert checkout.run("rust-tests.sh", KNOTLESS_FORGED="7") == TESTED
    assert checkout.run("rust-tests.sh", SEED="1") == TESTED
    assert checkout.run("rust-tests.sh", SEED="1") == SKIPPED


def test_each_tier_passes_for_itself(checkout: Checkout) -> None:
    assert checkout.run("rust-tests.sh", "deep") == TESTED.replace("gate", "deep", 1)
    assert checkout.run("rust-tests.sh") == TESTED
    assert checkout.run("rust-tests.sh", "deep") == SKIPPED.replace("gate", "deep")
    assert checkout.run("rust-tests.sh", KNOTLESS_TIER="deep") == SKIPPED.replace("gate", "deep")


def test_tests_that_fail_run_again(checkout: Checkout) -> None:
    (checkout.root / "broken").touch()
    assert checkout.run("rust-tests.sh", ok=False) == TESTED
    (checkout.root / "broken").unlink()
    assert checkout.run("rust-tests.sh") == TESTED


def test_an_unknown_tier_is_refused(checkout: Checkout) -> None:
    refused = checkout.run("rust-tests.sh", "all", ok=False)
    assert refused == "rust-tests: unknown tier all: give gate, deep or night\n"


def built(checkout: Checkout) -> set[str]:
    """Return by which profiles the files in the package were built, and what is recorded."""
    package = checkout.root / "knotless"
    files = [package / "_core.abi3.so", *(package / "_native").glob("*[!h]")]
    others = ("commit", "knotless-verify")
    return {file.read_text().strip() for file in files if file.name not in others}


def test_benchmarks_replace_what_set_up_has_built_and_not_the_reverse(checkout: Checkout) -> None:
    assert "build --profile setup " in checkout.run("native.sh", "--setup")
    assert built(checkout) == {"setup"}
    assert checkout.run("native.sh", "--setup") == ""
    assert "build --profile release " in checkout.run("native.sh")
    assert built(checkout) == {"release"}
    assert checkout.run("native.sh") == checkout.run("native.sh", "--setup") == ""

    newer = (checkout.root / "knotless/_core.abi3.so").stat().st_mtime + 1
    os.utime(checkout.root / "core/src/lib.rs", (newer, newer))
    assert "build --profile setup " in checkout.run("native.sh", "--setup")
    assert built(checkout) == {"setup"}


def test_what_was_built_before_profiles_were_recorded_is_built_again(checkout: Checkout) -> None:
    checkout.run("native.sh")
    (checkout.root / "knotless/_native/profile").unlink()
    assert "build --profile setup " in checkout.run("native.sh", "--setup")


def test_a_build_that_failed_is_repeated(checkout: Checkout) -> None:
    (checkout.root / "broken").touch()
    checkout.run("native.sh", "--setup", ok=False)
    (checkout.root / "broken").unlink()
    assert "build --profile setup " in checkout.run("native.sh", "--setup")


def test_the_verifier_of_proofs_is_built_from_what_is_there(checkout: Checkout) -> None:
    program = checkout.root / "knotless/_native/knotless-verify"
    built = "native: building the verifier of proofs\n"
    assert checkout.run("native.sh").startswith(built)
    assert program.read_text() == "first"
    assert checkout.run("native.sh") == ""
    source = checkout.root / "proofs/verifier/main.ml"
    source.write_text("second")
    newer = program.stat().st_mtime + 1
    os.utime(source, (newer, newer))
    assert checkout.run("native.sh") == built
    assert program.read_text() == "second"
