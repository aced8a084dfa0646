"""The datapath that forwards frames, with and without the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.base.errors import EmulationError
from knotless.emulation import datapath


def works() -> str | None:
    return None


def fails() -> str | None:
    return "this kernel has no module openvswitch"


def never() -> str | None:
    raise AssertionError("the userspace datapath needs no check")


def test_auto_is_the_kernels_where_it_works() -> None:
    assert datapath.chosen("auto", works) == "kernel"
    assert datapath.chosen("auto", fails) == "user"


def test_the_userspace_datapath_is_used_unchecked() -> None:
    assert datapath.chosen("user", never) == "user"


def test_the_kernels_is_refused_in_one_line_where_it_does_not_work() -> None:
    assert datapath.chosen("kernel", works) == "kernel"
    with pytest.raises(EmulationError, match="no module openvswitch; omit the option") as error:
        datapath.chosen("kernel", fails)
    assert "\n" not in str(error.value)


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a command that stands in for the trial in a namespace."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "unshare"


def write(command: Path, text: str) -> None:
    command.write_text(f"#!/bin/sh\n{text}\n")
    command.chmod(0o755)


def test_the_trial_decides(trial: Path, tmp_path: Path) -> None:
    write(trial, "exit 0")
    assert datapath.why_no_kernel(tmp_path / "missing") is None
    write(trial, 'echo first >&2; echo "ovs-dpctl: add-dp: Not permitted" >&2; exit 1')
    loaded = datapath.why_no_kernel(tmp_path)
    assert loaded is not None
    assert loaded.endswith("does not work: ovs-dpctl: add-dp: Not permitted")
    missing = datapath.why_no_kernel(tmp_path / "missing")
    assert missing is not None
    assert missing.startswith("this kernel has no module openvswitch")
    write(trial, "exit 3")
    assert str(datapath.why_no_kernel(tmp_path)).endswith("exit status 3")


def test_a_trial_that_cannot_run_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "cannot be tried" in str(datapath.why_no_kernel())


def test_the_trial_is_in_a_namespace_of_its_own(trial: Path, tmp_path: Path) -> None:
    write(trial, f'echo "$@" > {tmp_path}/said')
    assert datapath.why_no_kernel() is None
    commands = (tmp_path / "said").read_text()
    assert commands.startswith("--net sh -ec")
    assert "ovs-dpctl add-if" in commands


def test_messages_name_the_datapath_in_use() -> None:
    assert datapath.text_of({"settings": {"datapath": "kernel"}}) == "kernel datapath"
    assert datapath.text_of({"settings": {"datapath": "user"}}) == "userspace datapath"
    assert datapath.text_of({}) == "datapath unknown"
