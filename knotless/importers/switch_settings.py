"""The settings of switches as files of a fabric have them: buffers, schedulers, marking, watchdogs.

What the files do not say is left out of the settings, and listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from knotless.base.switch_settings import SwitchFile, SwitchSettings

Part = TypeVar("Part")


@dataclass(frozen=True)
class ReadGroup:
    """A priority group as the tables have it: what it takes from which pool, in bytes.

    ``port`` is a number of the fabric. ``pool`` is None if the tables name none. ``frame_bytes`` is
    the longest lossless packet, ``needs_bytes`` the headroom that its cable needs. None: unknown.
    """

    port: int
    priority: int
    pool: str | None
    reserved_bytes: int | None
    frame_bytes: int
    needs_bytes: int | None
    lossless: bool


@dataclass(frozen=True)
class ReadSettings:
    """The settings of a switch, its priority groups, and what is not known of them.

    ``losses`` are mistakes by which lossless packets can be lost, which settings cannot express.
    """

    settings: SwitchSettings = field(default_factory=SwitchSettings)
    groups: tuple[ReadGroup, ...] = ()
    unknown: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()


def file_of(settings: Mapping[str, ReadSettings]) -> tuple[SwitchFile, list[str]]:
    """Return the settings of switches (by name) as one file, and what is not known of them.

    What most switches have stands at the top, and counts for switches that are not named.
    """
    by_switch = {name: read.settings for name, read in settings.items() if read != ReadSettings()}
    common, _ = max(
        counted(by_switch.values()), key=lambda row: row[1], default=(SwitchSettings(), 0)
    )
    return (
        SwitchFile(
            **{name: getattr(common, name) for name in SwitchSettings.model_fields},
            switches={
                name: read.settings for name, read in settings.items() if read.settings != common
            },
        ),
        [f"{name}: not known: {text}" for name, read in settings.items() for text in read.unknown],
    )


def counted(values: Iterable[Part]) -> list[tuple[Part, int]]:
    """Return distinct values that need not be hashable, with how often they occur."""
    times: dict[str, tuple[Part, int]] = {}
    for value in values:
        key = repr(value)
        times[key] = (value, times.get(key, (value, 0))[1] + 1)
    return list(times.values())
