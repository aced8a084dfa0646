"""Configurations of BGP for fabrics of routers: each speaks with all that it is cabled to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tests.support.router_dumps import RouterNet

RELAXED = " bgp bestpath as-path multipath-relax\n"


def as_numbers(net: RouterNet) -> dict[str, int]:
    """Return an AS number of its own for each router."""
    return {router: 4_200_000_000 + number for number, router in enumerate(net.routers)}


def write_bgp(
    net: RouterNet,
    folder: Path,
    *,
    numbered: bool = True,
    numbers: Mapping[str, int] | None = None,
    more: Mapping[str, str] | None = None,
    more_of_bgp: Mapping[str, str] | None = None,
) -> Path:
    """Write a fabric without routes but with ``frr.conf``; returns the folder.

    Links have addresses of their own, or none: sessions are then by interface. ``more`` statements
    stand at the end, ``more_of_bgp`` in the section of BGP; those of router ``""`` in all.
    """
    asn = as_numbers(net) if numbers is None else numbers
    replace(net, routes={router: {} for router in net.routes}).write(folder)
    links = {end: (n, side) for n, cable in enumerate(net.cables) for side, end in enumerate(cable)}
    for router in net.routers:
        interfaces, neighbours = "", ""
        for (name, port), (peer, _) in sorted(net.peers.items()):
            if name != router:
                continue
            number, side = links[name, port]
            own, far = (
                f"172.31.{number // 128}.{2 * (number % 128) + end}" for end in (side, 1 - side)
            )
            if numbered:
                interfaces += f"interface {port}\n ip address {own}/31\n!\n"
                neighbours += f" neighbor {far} remote-as {asn[peer]}\n"
            else:
                neighbours += f" neighbor {port} interface remote-as external\n"
        extra, bgp = ((of or {}) for of in (more, more_of_bgp))
        text = (
            f"frr version 8.4\nfrr defaults datacenter\nhostname {router}\n!\n{interfaces}"
            f"router bgp {asn[router]}\n no bgp ebgp-requires-policy\n{RELAXED}{neighbours}"
            f"{bgp.get('', '')}{bgp.get(router, '')}"
            " !\n address-family ipv4 unicast\n  redistribute connected\n exit-address-family\n!\n"
            f"{extra.get('', '')}{extra.get(router, '')}"
        )
        (folder / router / "frr.conf").write_text(text)
    return folder
