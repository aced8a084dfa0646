"""A directory of rules: ``fabric.json``, and ``NAME.flows`` and ``NAME.groups`` per switch.

``multicast.json`` exists if multicast groups are declared, ``tags.json`` if hosts tag their
frames.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from knotless.base.errors import PlanError, RuleError
from knotless.base.files import folder_for_files, read_bytes, read_text, write_all
from knotless.base.memory import collector_paused
from knotless.base.printable import listed
from knotless.forwarding.openflow.ofctl_writer import write
from knotless.forwarding.openflow.rules import FabricRules
from knotless.forwarding.openflow.written import WrittenRules
from knotless.routing import multicast
from knotless.routing.multicast import MulticastGroup
from knotless.routing.vlans import host_tags
from knotless.routing.vlans.host_tags import HostTags
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.files import read, to_text
from knotless.topologies.formats.switch_files import FABRIC, RULES, files_to_remove, other_files

MULTICAST = "multicast.json"
MAX_FILE_BYTES = 256 * 1024 * 1024


def dir_files(
    fabric: Fabric,
    rules: FabricRules,
    groups: Sequence[MulticastGroup] = (),
    tags: HostTags | None = None,
) -> dict[str, str]:
    """Return the files of a directory of rules by name: what :func:`write_dir` writes."""
    files = {FABRIC: to_text(fabric)}
    if groups:
        files[MULTICAST] = multicast.to_text(groups)
    if tags:
        files[host_tags.FILE] = host_tags.to_text(tags)
    for name, of_switch in rules.items():
        files[f"{name}.flows"], files[f"{name}.groups"] = write(of_switch)
    return files


def write_dir(
    fabric: Fabric,
    rules: FabricRules,
    directory: str | Path,
    groups: Sequence[MulticastGroup] = (),
    tags: HostTags | None = None,
) -> None:
    """Write ``fabric``, ``rules``, multicast ``groups`` and host ``tags``; replaces files.

    Raises
    ------
    RuleError
        The directory or a file cannot be written.

    """
    write_files(dir_files(fabric, rules, groups, tags), directory)


def write_files(files: Mapping[str, str], directory: str | Path) -> None:
    """Write the files of a directory of rules, and remove those of an earlier plan.

    Raises
    ------
    RuleError
        The directory or a file cannot be written, or the directory has rules of other switches
        than those of its fabric.

    """
    folder = Path(directory)
    others = [folder / name for name in (MULTICAST, host_tags.FILE) if name not in files]
    others += files_to_remove(folder, files, RuleError)
    with folder_for_files(folder, RuleError):
        write_all({folder / name: text for name, text in files.items()}, RuleError, remove=others)


def remove_dir(directory: str | Path) -> None:
    """Remove a directory of rules; raises RuleError if it has files that are not of its fabric."""
    folder = Path(directory)
    files = [FABRIC, MULTICAST, host_tags.FILE]
    remove = [*files_to_remove(folder, (), RuleError), *(folder / name for name in files)]
    write_all({}, RuleError, remove)
    try:
        folder.rmdir()
    except OSError as error:
        raise RuleError(f"{folder} has files of others: name a new folder") from error


def is_dir_of_rules(path: str | Path) -> bool:
    """Tell whether ``path`` is a directory with a fabric of ours or with rules."""
    folder = Path(path)
    return folder.is_dir() and (os.path.lexists(folder / FABRIC) or any(folder.glob("*.flows")))


@collector_paused()
def read_dir(directory: str | Path) -> tuple[Fabric, FabricRules]:
    """Return the fabric and the rules in ``directory``.

    A switch without a ``.groups`` file has no groups. A switch without a ``.flows`` file has no
    rules, which the check reports.

    Raises
    ------
    FabricError
        ``fabric.json`` is missing or invalid.
    RuleError
        A file cannot be read or parsed, or is of no switch of the fabric.

    """
    folder = Path(directory)
    fabric = read(folder / FABRIC)
    own = {f"{switch.name}{suffix}" for switch in fabric.switches for suffix in RULES}
    if others := [path.name for path in other_files(folder, own)]:
        raise RuleError(
            f"{folder}: {listed(others, 3)}: not rules of a switch in {FABRIC}, so nothing is"
            " judged; remove them, or write the rules to a new folder"
        )

    def texts_of(name: str) -> tuple[str, str] | None:
        flows, groups = (_text(folder / f"{name}{suffix}") for suffix in RULES)
        return None if flows is None else (flows, groups or "")

    rules = WrittenRules(folder, texts_of)
    rules.add(switch.name for switch in fabric.switches)
    return fabric, rules


def rule_files(directory: str | Path) -> dict[str, bytes]:
    """Return what the fabric's file and those of rules in ``directory`` hold, by name.

    Raises RuleError if one cannot be read.
    """
    folder = Path(directory)
    paths = [path for suffix in RULES for path in folder.glob(f"*{suffix}")]
    return {
        path.name: read_bytes(path, RuleError, MAX_FILE_BYTES) for path in [folder / FABRIC, *paths]
    }


def read_multicast(fabric: Fabric, directory: str | Path) -> tuple[MulticastGroup, ...]:
    """Return the multicast groups declared in ``directory``.

    Raises
    ------
    RuleError
        The file cannot be read.
    PlanError
        The file cannot be parsed, or does not fit ``fabric``.

    """
    path = Path(directory) / MULTICAST
    text = _text(path)
    if text is None:
        return ()
    try:
        return multicast.from_text(fabric, text)
    except PlanError as error:
        raise error.within(str(path)) from None


def read_tags(fabric: Fabric, directory: str | Path) -> HostTags | None:
    """Return the VLANs in which hosts send, from ``directory``; None: they send untagged.

    Raises
    ------
    RuleError
        The file cannot be read or parsed, or does not fit ``fabric``.

    """
    path = Path(directory) / host_tags.FILE
    text = _text(path)
    if text is None:
        return None
    try:
        return host_tags.from_text(fabric, text)
    except RuleError as error:
        raise error.within(str(path)) from None


def _text(path: Path) -> str | None:
    """Return what the file holds, None when there is none."""
    return read_text(path, RuleError, MAX_FILE_BYTES) if path.exists() else None
