"""The files in the folders that users name, in a fixed order, before any of them is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_DUMP = "sonic_dump_"
_TECHSUPPORT = re.compile(rf"{_DUMP}.+")
OF_TECHSUPPORT = re.compile(
    r"dump/(?:CONFIG_DB|APPL_DB|COUNTERS_DB)\.json(?:\.(?P<dump>\d{1,2}))?"
    r"|etc/sonic/config_db(?P<saved>\d{0,2})\.json"
)
SAVED = "etc/sonic/"
MAX_FILE_BYTES = 256 << 20
"""The longest file that is read."""


def listed_files(paths: Sequence[str | Path]) -> Iterator[tuple[str, bool]]:
    """Yield all files and archives that are read, and whether the user named each."""
    for path in paths:
        if not Path(path).is_dir():
            yield str(path), True
            continue
        for folder, inner, names in os.walk(path):
            inner.sort()
            for name in sorted(names):
                file = os.path.join(folder, name)  # noqa: PTH118 - thousands of them
                if is_read(file):
                    yield file, False


def in_techsupport(path: Path) -> tuple[Path, str] | None:
    """Return the folder of the techsupport that a file is in, and its path in there."""
    for place, part in reversed([*enumerate(path.parts[:-1])]):
        if _TECHSUPPORT.fullmatch(part) and not _is_archive_name(part):
            return Path(*path.parts[: place + 1]), "/".join(path.parts[place + 1 :])
    return None


def _is_archive_name(name: str) -> bool:
    return name.endswith((".tar", ".tar.gz", ".tgz", ".gz"))


def is_read(path: str | Path) -> bool:
    """Tell whether a file is read: all are, but of a techsupport only those that matter."""
    if _DUMP not in str(path):
        return True
    inside = in_techsupport(Path(path))
    return inside is None or OF_TECHSUPPORT.fullmatch(inside[1]) is not None
