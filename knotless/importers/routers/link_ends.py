"""The ends of links between routers, as their tables have them, judged together."""

from __future__ import annotations

from collections.abc import Sequence

from knotless.base.link_ends import LinkEnd, disagreements
from knotless.importers.cabling.layer1_topology import NamedEnd
from knotless.importers.findings import Findings
from knotless.importers.routers.fabric import RouterFabric, channel_ends
from knotless.importers.routers.pfc import Qos
from knotless.importers.routers.qos import port_qos
from knotless.importers.routers.router import Router
from knotless.importers.sonic.database import Fields

_AUTONEG = {"on": True, "off": False}
_FIELDS = {
    "pauses": ("PORT_QOS_MAP", "pfc_enable"),
    "mtu_bytes": ("PORT", "mtu"),
    "rate_mbps": ("PORT", "speed"),
    "fec": ("PORT", "fec"),
    "autoneg": ("PORT", "autoneg"),
}
"""The table and the field of what the ends of a link are compared by."""


def judge_link_ends(
    routers: Sequence[Router], routed: RouterFabric, qos: Qos | None, findings: Findings
) -> None:
    """Add what the two ends of links do not agree on; without ``qos``, pauses are left out."""
    tables = {router.name: router.table("PORT") for router in routers}
    judged = set[frozenset[NamedEnd]]()
    for ends in channel_ends(routed):
        link = frozenset(ends)
        if link in judged or any(name not in tables for name, _ in ends):
            continue
        judged.add(link)
        a, b = (_end(end, tables[end[0]].get(end[1], {}), qos) for end in ends)
        for one in disagreements(a, b):
            add = findings.loss if one.loses else findings.problem
            table, field = _FIELDS[one.about]
            add(one.text, *(findings.cause(name, table, port, field) for name, port in ends))


def _end(end: NamedEnd, port: Fields, qos: Qos | None) -> LinkEnd:
    settings = None if qos is None else port_qos(qos[end[0]], end[1])
    return LinkEnd(
        f"{end[0]}:{end[1]}",
        flow_control=None if settings is None else "pfc",
        pauses=None if settings is None else frozenset(p for s in settings.pauses for p in s),
        obeys=None if settings is None else settings.obeys,
        mtu_bytes=_number(port.get("mtu")),
        rate_mbps=_number(port.get("speed")),
        fec=port.get("fec"),
        autoneg=_AUTONEG.get(port.get("autoneg", "")),
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else None
