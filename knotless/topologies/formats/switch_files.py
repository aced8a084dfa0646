"""Files of switches in a folder of ours, beside the fabric: those of one plan, and no others."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from knotless.base.errors import KnotlessError
from knotless.base.printable import listed
from knotless.topologies.formats.files import read

FABRIC = "fabric.json"
RULES, TABLES = (".flows", ".groups"), (".bridge", ".json")
"""Suffixes of the files of one switch: of OpenFlow rules, and of tables with VLANs."""
_SHOWN = 3


def files_to_remove(
    folder: Path, written: Collection[str], error: type[KnotlessError]
) -> list[Path]:
    """Return the files of switches that an earlier plan has left in a folder that is written to.

    They are of switches in the fabric that was written with them. Raises ``error`` if others are
    there, because nobody knows whose they are.
    """
    others = other_files(folder, written)
    if not others:
        return []
    try:
        names = {switch.name for switch in read(folder / FABRIC).switches}
    except KnotlessError:
        names = set()
    if unknown := [path.name for path in others if path.stem not in names]:
        raise error(f"{folder} has {listed(unknown, _SHOWN)} of another fabric: name a new folder")
    tables = [path.with_suffix(".json") for path in others if path.suffix == ".bridge"]
    return [*others, *(path for path in tables if path.name not in written)]


def other_files(folder: Path, names: Collection[str]) -> list[Path]:
    """Return the files of switches in a folder whose names are not in ``names``, sorted."""
    suffixes = (*RULES, TABLES[0])  # .json has other uses
    files = (path for suffix in suffixes for path in folder.glob(f"*{suffix}"))
    return sorted(path for path in files if path.name not in names)
