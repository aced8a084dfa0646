"""Who may share a VLAN, and what happens when there are not enough."""

from __future__ import annotations

import numpy as np
import pytest

from routing.channels import Channels
from routing.vlan import FIRST_VLAN, assign_vlans
from topologies.errors import PlanError


def _parallel(count: int) -> Channels:
    """Two switches, joined by ``count`` channels from the first to the second."""
    ports = np.arange(1, count + 1, dtype=np.int32)
    zeros, ones = np.zeros_like(ports), np.ones_like(ports)
    return Channels(("s1", "s2"), zeros, ones, ports, ports)


def _by(*channels: int) -> np.typing.NDArray[np.int32]:
    """One row a source at s1, each going to s2 by the channel given, -1: not at all."""
    paths = np.full((len(channels), 2, 1), -1, dtype=np.int32)
    paths[:, 1, 0] = channels
    return paths


def test_sources_that_agree_share_the_first_vlan_that_fits() -> None:
    assert assign_vlans(_parallel(3), _by(0, 1, 0, 2, 1)).tolist() == [2, 3, 2, 4, 3]


def test_sources_that_go_nowhere_fit_anywhere() -> None:
    assert assign_vlans(_parallel(2), _by(0, -1, 1, -1)).tolist() == [2, 2, 3, 2]


def test_all_vlans_that_802_1q_has_may_be_used_and_no_more() -> None:
    most = 4094 - FIRST_VLAN + 1
    assert assign_vlans(_parallel(most), _by(*range(most)))[-1] == 4094
    with pytest.raises(PlanError, match="needs more than 4093 VLANs"):
        assign_vlans(_parallel(most + 1), _by(*range(most + 1)))
