"""The compiled rules of all switches; those of one are made values of Python on access."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from knotless._core import forwarding as core
from knotless.forwarding.openflow.rules import SwitchRules


class CompiledRules(Mapping[str, SwitchRules]):
    """The rules of each switch by name; made on each access, not cached."""

    def __init__(self, names: tuple[str, ...], compiled: core.Compiled) -> None:
        self.core = compiled
        self.names = names
        self._index = {name: i for i, name in enumerate(names)}

    def __len__(self) -> int:
        """Return the number of switches."""
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the switches, in the order of the fabric."""
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a switch of this name, without making its rules."""
        return name in self._index

    def __getitem__(self, name: str) -> SwitchRules:
        """Return the rules of a switch."""
        return SwitchRules(*self.core.rules(self._index[name]))

    @cached_property
    def parsed(self) -> list[core.Switch]:
        """The rules of all switches in the core's form."""
        return self.core.switches()

    def is_compiled_alike(self, other: CompiledRules) -> bool:
        """Tell whether the rules of all switches are equal, listed in the same order.

        A subclass may add rules that were not compiled: what has another type is never equal.
        """
        alike = (type(self), self.names) == (type(other), other.names)
        return alike and self.core.equals(other.core)

    @property
    def counts(self) -> NDArray[np.int64]:
        """(switches,) the number of rules of each switch."""
        return self.core.counts

    def count(self, name: str) -> int:
        """Return the number of rules of a switch."""
        return int(self.counts[self._index[name]])

    @property
    def total(self) -> int:
        """The number of rules of all switches."""
        return int(self.counts.sum())

    @property
    def groups(self) -> int:
        """The number of groups of all switches."""
        return self.core.groups
