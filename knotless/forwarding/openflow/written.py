"""Rules read from files, without an object of Python for each rule until one is wanted.

Large fabrics have millions of rules, and the check needs those in the core's form only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from knotless._core import forwarding as core
from knotless.base.errors import RuleError
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.forwarding.openflow.rules import SwitchRules

_AT_A_TIME = 512
"""The switches whose texts are kept at the same time."""


class WrittenRules(Mapping[str, SwitchRules]):
    """The rules of each switch by name.

    ``parsed`` are those in the core's form that send to no reserved port for all ports of the
    switch. ``others`` are the rules of the other switches, and what was accessed.
    """

    def __init__(self, folder: Path, texts_of: Callable[[str], tuple[str, str] | None]) -> None:
        """Read no rules yet: ``texts_of`` returns those of a switch and its groups, None: none."""
        self._folder = folder
        self.parsed: dict[str, core.Switch] = {}
        self.others: dict[str, SwitchRules] = {}
        self._texts_of = texts_of
        self._hashes: dict[str, int] = {}

    def add(self, names: Iterable[str]) -> None:
        """Read the rules of switches, text of ovs-ofctl.

        Raises
        ------
        RuleError
            As :func:`parse`, with the folder and the name of the switch.

        """
        each = ((name, self._texts_of(name)) for name in names)
        written = ((name, texts) for name, texts in each if texts is not None)
        while some := dict(islice(written, _AT_A_TIME)):
            for name, switch in zip(some, core.Switch.all_written([*some.values()]), strict=True):
                if isinstance(switch, str):
                    raise RuleError(switch).within(str(self._folder / name))
                if switch.floods:
                    self.others[name] = parse(*some[name])
                else:
                    self.parsed[name] = switch
                self._hashes[name] = hash(some[name])

    def __len__(self) -> int:
        """Return the number of switches with rules."""
        return len(self._hashes)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the switches, in the order in which they were added."""
        return iter(self._hashes)

    def __contains__(self, name: object) -> bool:
        """Tell whether there are rules for a switch of this name."""
        return name in self._hashes

    def __getitem__(self, name: str) -> SwitchRules:
        """Return the rules of a switch; raises RuleError if they are others now."""
        if name not in self.others:
            hash_before, texts = self._hashes[name], self._texts_of(name)
            if texts is None or hash(texts) != hash_before:
                where = str(self._folder / name)
                raise RuleError("the rules have changed since they were read").within(where)
            self.others[name] = parse(*texts)
        return self.others[name]
