"""Rules read from files, without an object of Python for each rule until one is wanted.

Large fabrics have millions of rules, and the check needs those in the core's form only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from knotless._core import forwarding as core
from knotless.base.errors import RuleError
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.forwarding.openflow.rules import SwitchRules


class WrittenRules(Mapping[str, SwitchRules]):
    """The rules of each switch by name.

    ``parsed`` are those in the core's form that send to no reserved port for all ports of the
    switch. ``others`` are the rules of the other switches, and what was accessed.
    """

    def __init__(self) -> None:
        self.parsed: dict[str, core.Switch] = {}
        self.others: dict[str, SwitchRules] = {}
        self._texts: dict[str, tuple[str, str]] = {}

    def add(self, name: str, flows: str, groups: str) -> None:
        """Add the rules of a switch in text of ovs-ofctl; raises RuleError as :func:`parse`."""
        try:
            switch = core.Switch.written(flows, groups)
        except ValueError as error:
            raise RuleError(str(error)) from None
        if switch.floods:
            self.others[name] = parse(flows, groups)
        else:
            self.parsed[name] = switch
        self._texts[name] = (flows, groups)

    def __len__(self) -> int:
        """Return the number of switches with rules."""
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the switches, in the order in which they were added."""
        return iter(self._texts)

    def __contains__(self, name: object) -> bool:
        """Tell whether there are rules for a switch of this name."""
        return name in self._texts

    def __getitem__(self, name: str) -> SwitchRules:
        """Return the rules of a switch."""
        if name not in self.others:
            self.others[name] = parse(*self._texts[name])
        return self.others[name]
