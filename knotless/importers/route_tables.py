"""Routers and what they do with IPv4 addresses, apart from whose files say so.

This is the form that proofs are about, which ``proofs/verifier/routes.ml`` reads: ``fabric.json``
with the routers, the links between them and where packets enter, and for each router a file
``NAME.routes`` with a line for each prefix::

    10.0.0.0/24 via Ethernet0 Ethernet4     out of any one of these ports
    10.1.0.2/31 link Ethernet0              the same; what comes from one of them has arrived
    10.1.0.3/32 local                       an address of the router itself
    10.2.0.0/16 drop

"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.topologies.formats.switch_files import FABRIC

ROUTES = ".routes"
"""The suffix of a router's file."""


@dataclass(frozen=True)
class PlainRoute:
    """The treatment of the addresses of a prefix by a router; see the module."""

    does: Literal["via", "link", "local", "drop"]
    ports: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The route as its line has it, behind the prefix."""
        return " ".join([self.does, *self.ports])


@dataclass(frozen=True)
class PacketSource:
    """An entry of packets: hosts behind a port, or a device without files.

    ``address`` is one that only those behind this port have, None: there is none that is known.
    """

    name: str
    end: NamedEnd
    address: str | None


@dataclass(frozen=True)
class RouteTables:
    """Routers by name, with their routes by prefix, and ``links`` between their ports.

    ``sources`` are by the number of the host, or of the port that sends. ``prefixes_of`` returns
    the addresses of a destination as prefixes.
    """

    links: Sequence[tuple[NamedEnd, NamedEnd]]
    sources: Mapping[int, PacketSource]
    routes: Mapping[str, Mapping[str, PlainRoute]]
    prefixes_of: Callable[[int], Sequence[str]]

    @property
    def hosts(self) -> list[PacketSource]:
        """The sources, each once, in the order of the file."""
        return [*dict.fromkeys(self.sources.values())]

    def files(self, name: str, read_from: Mapping[str, str]) -> dict[str, str]:
        """Return the text of each file of the fabric called ``name``.

        ``read_from`` are the files that it was read from, with their SHA-256.
        """
        hosts = [
            {
                "name": source.name,
                "router": source.end[0],
                "port": source.end[1],
                **({} if source.address is None else {"address": source.address}),
            }
            for source in self.hosts
        ]
        links = [
            {"a": a, "a_port": a_port, "b": b, "b_port": b_port}
            for (a, a_port), (b, b_port) in self.links
        ]
        fabric = {
            **{"name": name, "routers": [*self.routes], "links": links, "hosts": hosts},
            "read_from": [{"file": file, "sha256": text} for file, text in read_from.items()],
        }
        return {
            FABRIC: json.dumps(fabric, indent=1) + "\n",
            **{router + ROUTES: _lines(routes) for router, routes in self.routes.items()},
        }


def _lines(routes: Mapping[str, PlainRoute]) -> str:
    ordered = sorted(routes, key=ipaddress.IPv4Network)
    return "".join(f"{prefix} {routes[prefix].text}\n" for prefix in ordered)
