"""Files of the switches of a Clos network of three levels, to measure ``knotless check`` with.

    .venv/bin/python -m bench.support.clos_files /tmp/clos
    .venv/bin/knotless check /tmp/clos --failures 1

takes the processor time and memory that docs/decisions/failure-tables.md names.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path

import click

from bench.support.entry import run_benchmark
from knotless.cli.numbers import Whole
from tests.support.router_dumps import End, RouterNet
from tests.support.router_nets import clos


class _Net(RouterNet):
    """A network whose cables do not change."""

    @cached_property
    def peers(self) -> dict[End, End]:
        """The peer of each port: the other end of its cable."""
        return {a: b for cable in self.cables for a, b in (cable, cable[::-1])}

    @cached_property
    def _ports(self) -> dict[str, list[str]]:
        ports: dict[str, list[str]] = {name: [] for name in self.routes}
        for router, port in self.peers:
            ports[router].append(port)
        return ports

    def ports(self, router: str) -> list[str]:
        """Return the physical ports of a router."""
        return self._ports[router]


def write(folder: Path, pods: int, leaves: int, aggregations: int, cores: int) -> int:
    """Write the files; return the number of switches."""
    plain = clos(pods, leaves, aggregations, cores)
    net = _Net(plain.cables, hosts=plain.hosts, routes=plain.routes, qos=plain.qos)
    for router in net.routes:
        directory = folder / router
        directory.mkdir(parents=True, exist_ok=True)
        heard = [
            {
                port: {
                    "chassis": {net.peers[router, port][0]: {"id": {"type": "mac", "value": "x"}}},
                    "port": {"id": {"type": "ifname", "value": net.peers[router, port][1]}},
                }
            }
            for port in net.ports(router)
        ]
        contents = {
            "config_db.json": net.config(router),
            "appl_db.json": net.appl_routes(router),
            "lldp.json": {"lldp": {"interface": heard}},
        }
        for name, value in contents.items():
            (directory / name).write_text(json.dumps(value))
    return len(net.routes)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("pods", type=Whole(1), default=32)
@click.argument("leaves", type=Whole(1), default=16)
@click.argument("aggregations", type=Whole(1), default=8)
@click.argument("cores", type=Whole(1), default=32)
def main(folder: Path, pods: int, leaves: int, aggregations: int, cores: int) -> None:
    """Write the files of SONiC switches to FOLDER, by default 1,024 of them.

    These are 32 PODS of 16 LEAVES and 8 AGGREGATIONS, and for each aggregation switch of a pod a
    plane of 32 CORES. With 32 hosts in the network of each leaf, they have 16,384 hosts.
    """
    click.echo(f"{write(folder, pods, leaves, aggregations, cores)} switches")


if __name__ == "__main__":
    run_benchmark(main)
