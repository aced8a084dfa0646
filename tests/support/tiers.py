"""A two-tier InfiniBand cluster with the descriptions of nodes that vendors' switches send."""

from __future__ import annotations

from tests.support.infiniband_dumps import Subnet


def cluster(
    leaves: int = 28, spines: int = 12, hosts: int = 542, *, bounce: bool = False
) -> Subnet:
    """Return leaves and spines with shortest paths; hosts are spread over the leaves.

    ``bounce``: two spines send what is for one leaf each down to the other leaf, which sends it up
    again, as after a failure of the cables.
    """
    names = [
        f"MF0;A{1 + n // 4:02d}-P1-IBLEAF-{n // 4:02d}-{n % 4:02d}:MQM9700/U1"
        for n in range(leaves)
    ]
    names += [f"MF0;B01-P1-IBSPINE-{n:02d}:MQM9700/U1" for n in range(spines)]
    links = [
        (leaf, 33 + spine, leaves + spine, 1 + leaf)
        for leaf in range(leaves)
        for spine in range(spines)
    ]
    ends = [(f"gpu-{n // 8:03d} mlx5_{n % 8}", n % leaves, 1 + n // leaves) for n in range(hosts)]
    subnet = Subnet(names, links, ends)
    for switch in range(leaves + spines):
        lft: dict[int, int] = {}
        for host, (_, leaf, port) in enumerate(ends):
            lid = subnet.lids(host)[0]
            if switch == leaf:
                lft[lid] = port
            elif switch >= leaves:
                lft[lid] = 1 + leaf
            else:
                lft[lid] = 33 + host % spines
        subnet.lfts.append(lft)
    if bounce:
        for leaf, other in ((0, 1), (1, 0)):  # the cable from this leaf to the spine of its number
            for host, (_, home, _) in enumerate(ends):
                lid = subnet.lids(host)[0]
                if home == leaf and host % spines == leaf:
                    subnet.lfts[leaves + leaf][lid] = 1 + other
                    subnet.lfts[other][lid] = 33 + other
    return subnet
