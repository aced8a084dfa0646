"""A directory of rules: ``fabric.json``, and ``NAME.flows`` and ``NAME.groups`` a switch.

``multicast.json`` is there where multicast groups were declared, ``tags.json`` where hosts tag
their frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from common.errors import PlanError, RuleError
from common.gc_pause import collector_paused
from forwarding.openflow import ofctl_text
from forwarding.openflow.rules import FabricRules, SwitchRules
from routing import multicast
from routing.multicast import MulticastGroup
from routing.vlans import host_tags
from routing.vlans.host_tags import HostTags
from topologies.fabric import Fabric
from topologies.formats.files import read, to_text

MULTICAST = "multicast.json"
MAX_FILE_BYTES = 256 * 1024 * 1024


def write_dir(
    fabric: Fabric,
    rules: FabricRules,
    directory: str | Path,
    groups: Sequence[MulticastGroup] = (),
    tags: HostTags | None = None,
) -> None:
    """Write ``fabric``, its ``rules``, multicast ``groups`` and host ``tags``; files are replaced.

    Raises
    ------
    RuleError
        The directory or a file cannot be written.

    """
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "fabric.json").write_text(to_text(fabric))
        _write_or_remove(folder / MULTICAST, multicast.to_text(groups) if groups else None)
        _write_or_remove(folder / host_tags.FILE, host_tags.to_text(tags) if tags else None)
        for name, of_switch in rules.items():
            flows, copies = ofctl_text.write(of_switch)
            (folder / f"{name}.flows").write_text(flows)
            (folder / f"{name}.groups").write_text(copies)
    except OSError as error:
        raise RuleError(f"{error.filename!r} cannot be written: {error.strerror}") from None


@collector_paused()
def read_dir(directory: str | Path) -> tuple[Fabric, FabricRules]:
    """Return the fabric and the rules in ``directory``.

    A switch without a ``.groups`` file has no groups; one without a ``.flows`` file has no rules,
    which the check will tell.

    Raises
    ------
    FabricError
        ``fabric.json`` is missing or bad.
    RuleError
        A file cannot be read or understood.

    """
    folder = Path(directory)
    fabric = read(folder / "fabric.json")
    rules: dict[str, SwitchRules] = {}
    for switch in fabric.switches:
        flows = _text(folder / f"{switch.name}.flows")
        groups = _text(folder / f"{switch.name}.groups")
        if flows is None:
            continue
        try:
            rules[switch.name] = ofctl_text.parse(flows, groups or "")
        except RuleError as error:
            raise error.within(str(folder / switch.name)) from None
    return fabric, rules


def read_multicast(fabric: Fabric, directory: str | Path) -> tuple[MulticastGroup, ...]:
    """Return the multicast groups that were declared with the rules in ``directory``.

    Raises
    ------
    RuleError
        The file cannot be read.
    PlanError
        It cannot be understood, or does not fit ``fabric``.

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
    """Return in which VLANs hosts send, by the file in ``directory``; None: they send untagged.

    Raises
    ------
    RuleError
        The file cannot be read or understood, or does not fit ``fabric``.

    """
    path = Path(directory) / host_tags.FILE
    text = _text(path)
    if text is None:
        return None
    try:
        return host_tags.from_text(fabric, text)
    except RuleError as error:
        raise error.within(str(path)) from None


def _write_or_remove(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text(text)


def _text(path: Path) -> str | None:
    """Return what the file holds, None when there is none."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise RuleError(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB")
        return path.read_text()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RuleError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError:
        raise RuleError(f"{str(path)!r} is not UTF-8 text") from None
