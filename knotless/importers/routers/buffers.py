"""Headroom: what a priority group must hold after it has sent a pause.

Until the pause takes effect, the sender fills the cable, and the frames that are being sent at both
ends are finished: ``2 * length * rate / speed + MTU of the port + MTU of lossless packets``. The
time in which chips respond comes on top; it depends on the chip, so it is left out here: headroom
that is reported as too small is too small for any chip.

References
----------
IEEE 802.1Q-2018, Annex N (buffer requirements of PFC). SONiC design document "Dynamically headroom
calculation"; sonic-net/sonic-swss, cfgmgr/buffer_headroom_mellanox.lua (198,000,000 m/s).

"""

from __future__ import annotations

from collections.abc import Iterator

from knotless.importers.routers.qos import groups_of
from knotless.importers.routers.router import Router

METRES_PER_S = 198_000_000
PORT_MTU, LOSSLESS_MTU = 9100, 1024
"""The value that SONiC uses where the tables say nothing."""


def headroom_bytes(length_m: float, rate_mbps: int, port_mtu: int, lossless_mtu: int) -> int:
    """Return the least headroom of a link, in bytes, without the response time of chips."""
    on_cable = 2 * length_m * rate_mbps * 1e6 / METRES_PER_S / 8
    return int(on_cable) + port_mtu + lossless_mtu


def small_headroom(router: Router) -> Iterator[str]:
    """Yield the ports whose headroom is too small for the length of their cable."""
    lengths = {
        port: text for row in router.table("CABLE_LENGTH").values() for port, text in row.items()
    }
    patterns = [row.get("mtu", "") for row in router.table("LOSSLESS_TRAFFIC_PATTERN").values()]
    lossless_mtu = _number(patterns[0]) if patterns else LOSSLESS_MTU
    for port, groups, profile in groups_of(router):
        fields = router.table("PORT").get(port, {})
        length = _metres(lengths.get(port, ""))
        rate, xoff = _number(fields.get("speed", "")), _number(profile.get("xoff", ""))
        port_mtu = _number(fields.get("mtu", str(PORT_MTU)))
        if not (length and rate and xoff and port_mtu and lossless_mtu):
            continue
        needed = headroom_bytes(length, rate, port_mtu, lossless_mtu)
        if xoff < needed:
            yield (
                f"{router.name}:{port}: priority groups {groups[0]} to {groups[-1]} have a headroom"
                f" (xoff) of {xoff} bytes, but {length:g} m at {rate // 1000} Gb/s need at least"
                f" {needed}: packets can be lost"
            )


def _number(text: str) -> int:
    """Return a positive number of at most ten digits, otherwise 0."""
    return int(text) if text.isdecimal() and len(text) <= 10 else 0


def _metres(text: str) -> float:
    return float(_number(text.removesuffix("m")))
