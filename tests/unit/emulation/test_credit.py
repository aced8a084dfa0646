"""Credit pages that a killed link emulator leaves behind."""

from __future__ import annotations

import fcntl
from pathlib import Path

from knotless.emulation.runtime import remove_credit


def test_down_removes_the_pages_of_ended_emulators_only(tmp_path: Path) -> None:
    """A page that a running emulator locks stays, and so does one that is being created."""
    for name in ("ended", "running"):
        (tmp_path / name).write_bytes(bytes(4096))
    (tmp_path / "new").touch()
    with (tmp_path / "running").open("rb") as page:
        fcntl.flock(page, fcntl.LOCK_EX)
        remove_credit(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "running"]
    remove_credit(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    remove_credit(tmp_path / "none")
