"""How many frames each channel has lost, so that counters of ports show what is under way.

A successor, or a controller that starts again, needs the same numbers: the counters of switches go
on, but do not tell a frame that was lost on a cut link from one that waits. So they are kept in a
file beside the ``state_file``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from knotless.base.files import read_text, write_whole
from knotless.base.yaml_file import complaint
from knotless.controller.config import ConfigError
from knotless.controller.draining import Channel, Counters
from knotless.controller.wiring import port_text

_MAX_BYTES = 1 << 24
_FILE = TypeAdapter(dict[str, tuple[int, int, int]])
"""By sending and receiving port (``s1:2-s2:3``), the fields of a :class:`Loss`."""


@dataclass(frozen=True)
class Loss:
    """Frames that a channel has lost, and the counters of its ports when they were counted."""

    frames: int
    sent: int
    received: int


def counted(channels: Iterable[Channel], readings: Sequence[Counters]) -> dict[Channel, Loss]:
    """Return what channels have lost on which nothing but probes is under way.

    Counters that did not change from one reading to the next count all of these.
    """
    found: dict[Channel, Loss] = {}
    for a, b in channels:
        for before, now in pairwise(readings):
            if not {a, b} <= before.keys() & now.keys():
                continue
            sent, received = now[a][1], before[b][0]
            loss = Loss(sent - received, sent, received)
            known = found.get((a, b))
            stood = (before[a], before[b]) == (now[a], now[b])
            if known is None or (stood and loss.frames < known.frames):
                found[a, b] = loss
    return found


class Losses:
    """What the channels of a fabric have lost; kept in the file ``path``, if there is one.

    ``times`` is how often it was counted.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.times = 0
        self._found: dict[str, Loss] = {}

    @staticmethod
    def beside(state_file: Path | None) -> Losses:
        """Return those that are kept beside a state file: ``state.json``, ``state-lost.json``."""
        if state_file is None:
            return Losses()
        return Losses(state_file.with_stem(f"{state_file.stem}-lost"))

    def read(self) -> None:
        """Take what another controller has counted; raises ConfigError naming the file."""
        if self._path is None or not self._path.exists():
            return
        try:
            found = _FILE.validate_json(read_text(self._path, ConfigError, _MAX_BYTES))
        except ValidationError as error:
            what = f"{self._path}: {complaint(error)}; delete the file to do without"
            raise ConfigError(what) from error
        self._found = {name: Loss(*fields) for name, fields in found.items()}

    def add(self, found: Mapping[Channel, Loss]) -> None:
        """Keep what was counted, in place of what was counted before; raises KnotlessError."""
        self.times += 1
        self._found.update({_name(channel): loss for channel, loss in found.items()})
        if self._path is not None and found:
            text = json.dumps({name: astuple(loss) for name, loss in self._found.items()})
            write_whole(self._path, text + "\n", ConfigError)

    def of(self, channel: Channel, counters: Counters) -> int:
        """Return how many frames were lost; 0 if counters have begun again since: a restart."""
        loss, (a, b) = self._found.get(_name(channel)), channel
        if loss is None or counters[a][1] < loss.sent or counters[b][0] < loss.received:
            return 0
        return loss.frames


def _name(channel: Channel) -> str:
    return "-".join(map(port_text, channel))
