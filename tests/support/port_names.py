"""Names of ports that real switches and servers have, of which none says what the port leads to."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.support.router_dumps import Hops, RouterNet

REAL = (
    [f"eth{n}" for n in range(16)]
    + [f"swp{n}" for n in range(1, 33)]
    + [f"swp{n}s{lane}" for n in range(1, 9) for lane in range(4)]
    + [f"Ethernet{4 * n}" for n in range(24)]
    + [f"Eth1/{n}" for n in range(1, 17)]
    + [f"enp{n}s0f{port}np{port}" for n in (1, 2, 65, 129) for port in range(2)]
    + [f"ens{n}f0" for n in (1, 2, 3, 192, 256)]
    + [f"eno{n}" for n in (1, 2, 49)]
    + [f"Vlan{n}" for n in (1, 10, 100, 1000, 4094)]
    + [f"vlan{n}" for n in (1, 10, 100, 4094)]
    + [f"PortChannel{n}" for n in (1, 10, 101, 1024)]
    + [f"bond{n}" for n in range(6)]
    + ["mgmt0", "mgmt1", "mgmt_port", "lo0", "lo1", "loop0", "Loopback0", "Loopback1", "lopri"]
    + ["dummy0", "dummy1", "docker0", "docker_gw", "Bridge", "Bridge1", "br0", "br-fabric"]
    + ["tun0", "tunnel1", "sit0", "site1", "site2", "ip6tnl0", "virbr0", "veth0", "cali0", "ib0"]
    + ["hsn0", "hsn1", "roce0", "rdma1", "uplink1", "fabric0", "peerlink", "isl1", "sfp-sfpplus1"]
)
"""Only ``lo`` is fixed by Linux, and it is not among them, and must not be."""


def renamed(net: RouterNet, rng: random.Random) -> tuple[RouterNet, dict[tuple[str, str], str]]:
    """Return the fabric with other names of all interfaces, and these by router and old name."""
    names: dict[tuple[str, str], str] = {}
    for router in net.routers:
        used = {port for name, port in net.peers if name == router}
        used |= {port for name, port in net.hosts if name == router}
        used |= {lag for name, lag in net.lags if name == router}
        chosen = rng.sample(sorted(set(REAL)), len(used))
        names |= {(router, old): new for old, new in zip(sorted(used), chosen, strict=True)}

    def hops_of(router: str, hops: Hops) -> Hops:
        return [(address, names.get((router, port), port)) for address, port in hops]

    other = RouterNet(
        [(_end(a, names), _end(b, names)) for a, b in net.cables],
        hosts={_end(end, names): prefix for end, prefix in net.hosts.items()},
        routes={
            router: {prefix: hops_of(router, hops) for prefix, hops in routes.items()}
            for router, routes in net.routes.items()
        },
    )
    other.lags = {
        _end(end, names): [names[end[0], port] for port in ports] for end, ports in net.lags.items()
    }
    return other, names


def _end(end: tuple[str, str], names: dict[tuple[str, str], str]) -> tuple[str, str]:
    return end[0], names[end]


def shown(cycle: list[str], names: dict[tuple[str, str], str]) -> Iterator[str]:
    """Yield virtual channels such as ``r0:swp1/0`` with the new names."""
    for text in cycle:
        router, _, rest = text.partition(":")
        port, _, vc = rest.rpartition("/")
        yield f"{router}:{names[router, port]}/{vc}"
