"""Rules read from files, without an object for each rule where the core reads the text.

The core reads what :mod:`knotless.forwarding.openflow.ofctl_writer` writes. Large fabrics have
millions of rules, and the check needs those in the core's form only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from knotless._core import forwarding as core
from knotless.forwarding.openflow.ofctl_parser import parse
from knotless.forwarding.openflow.rules import SwitchRules


class WrittenRules(Mapping[str, SwitchRules]):
    """The rules of each switch by name; those that the core has read are parsed on access.

    ``parsed`` are these in the core's form: none of them sends to all ports of its switch.
    ``others`` are the rules of the other switches, and what was accessed.
    """

    def __init__(self) -> None:
        self.parsed: dict[str, core.Switch] = {}
        self.others: dict[str, SwitchRules] = {}
        self._texts: dict[str, tuple[str, str]] = {}

    def add(self, name: str, flows: str, groups: str) -> None:
        """Add the rules of a switch in text of ovs-ofctl; raises RuleError as :func:`parse`."""
        switch = core.Switch.written(flows, groups)
        if switch is None:
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
