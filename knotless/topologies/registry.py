"""The registry of families: every :class:`Family` in the modules of ``topologies.families``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from knotless.base.plugins import Plugins
from knotless.topologies.family import Family


@cache
def families() -> Mapping[str, Family]:
    """Return the families by name, in alphabetical order.

    Returns
    -------
    mapping of str to Family
        Every :class:`~knotless.topologies.family.Family` in a module of ``topologies.families``.

    Examples
    --------
    >>> families()["ring"].usage
    'ring,N'

    """
    return Plugins("knotless.topologies.families", Family)
