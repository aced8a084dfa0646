"""Follows frames through the OpenFlow rules of a whole fabric."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

End = tuple[int, int]
"""A switch (its index) and a port."""

def walk(
    switches: Sequence[object],
    leaves: Sequence[End],
    enters: Sequence[End],
    hosts: Sequence[End],
    macs: Sequence[int],
    floods: Sequence[tuple[int, int, Sequence[bool]]],
    tags: NDArray[np.uint16] | None,
) -> tuple[
    NDArray[np.uint32],
    NDArray[np.uint32],
    NDArray[np.int64],
    NDArray[np.int64],
    tuple[int, int],
    list[int],
]:
    """Send a frame between every two hosts, and from each host to the address of each flood.

    ``switches`` are :class:`routing.rules.SwitchRules`, ``leaves`` and ``enters`` the ends of each
    channel, ``floods`` an address, an EtherType and who must get it, ``tags`` (hosts, hosts and
    floods) the tag that a host puts on. Numbers that fit no field raise OverflowError.

    Returns
    -------
    late
        (source, destination) of frames that do not simply arrive: one copy at each switch.
    lame
        (flood, source) of floods that do not simply reach each member once.
    loads
        Delivered paths on each channel.
    edges
        The channel dependency graph, of channel * 8 + priority.
    switches passed, most
        On all delivered paths together, and on the longest.
    strange
        The switches with rules that match what is not followed; these rules are left out.

    """
