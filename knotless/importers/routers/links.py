"""Links that are up, by configurations: ports, LAGs, VLANs and sub-interfaces.

References
----------
sonic-net/sonic-buildimage, src/sonic-yang-models: sonic-port.yang (``admin_status`` of a port is
``down`` by default), sonic-portchannel.yang (``admin_status`` is mandatory), sonic-vlan.yang and
sonic-vlan-sub-interface.yang (no default: vlanmgrd and intfmgrd turn them on).

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from knotless.importers.routers.cables import Cabling
from knotless.importers.routers.interfaces import Interfaces
from knotless.importers.routers.router import Router

_UP, _DOWN = "up", "down"


class Links:
    """The links of routers, whose configurations say which ports are on.

    ``interfaces`` are those of the routers.
    """

    def __init__(self, routers: Sequence[Router], cabling: Cabling) -> None:
        self._routers: Mapping[str, Router] = {router.name: router for router in routers}
        self.interfaces = Interfaces(routers)
        self._peers = cabling.peers
        self._lag_of = {
            (name, port): lag
            for name in self._routers
            for lag, ports in self.interfaces[name].lags.items()
            for port in ports
        }

    def link_is_up(self, router: str, interface: str) -> bool | None:
        """Tell whether packets can leave by an interface; None if the files do not say.

        The ports of a link are on at both ends, also that of a member, and the LAGs of both ends
        have as many of them as they need.
        """
        near = self._lag_is_up(router, interface)
        far_lags = {
            (far[0], self._lag_of[far])
            for port in self.interfaces[router].ports(interface)
            if (far := self._peers.get((router, port))) in self._lag_of
        }
        return _all([near, *(self._lag_is_up(*lag) for lag in sorted(far_lags))])

    def _lag_is_up(self, router: str, interface: str) -> bool | None:
        """Tell whether one end has what it needs: of a LAG enough links, of a port its link."""
        owner, on = self._routers[router], self._is_on(router, interface)
        base = self.interfaces[router].base(interface)
        members = self.interfaces[router].lags.get(base)
        if members is None:
            return _all([on, *(self._cable_is_up(router, p) for p in self._ports(router, base))])
        least = owner.table("PORTCHANNEL").get(base, {}).get("min_links", "1")
        wanted = max(1, int(least)) if least.isdecimal() else None
        cables = [self._cable_is_up(router, port) for port in members]
        if wanted is None:
            return None
        if cables.count(True) >= wanted:
            return on
        return (
            None if cables.count(True) + cables.count(None) >= wanted and on is not False else False
        )

    def _ports(self, router: str, base: str) -> Sequence[str]:
        of_router = self.interfaces[router]
        return () if of_router.own(base, routed=True) else of_router.ports(base)

    def _cable_is_up(self, router: str, port: str) -> bool | None:
        """Tell whether both ends of a cable are on; a far end without files is taken to be."""
        far = self._peers.get((router, port))
        ends = [(router, port), *([far] if far is not None and far[0] in self._routers else [])]
        return _all([self._is_on(*end) for end in ends])

    def _is_on(self, router: str, interface: str) -> bool | None:
        """Tell whether an interface is turned on, whatever it is connected to."""
        owner, of_router = self._routers[router], self.interfaces[router]
        configuration = owner.configuration
        base = of_router.base(interface)
        if configuration is not None and {base, interface} & configuration.closed:
            return False
        if owner.table("VLAN_SUB_INTERFACE").get(interface, {}).get("admin_status") == _DOWN:
            return False
        if of_router.own(base, routed=True):
            return True
        if of_router.is_bridge(base):
            return owner.table("VLAN").get(base, {}).get("admin_status", _UP) == _UP
        is_lag = base in of_router.lags or base in owner.table("PORTCHANNEL")
        row = owner.table("PORTCHANNEL" if is_lag else "PORT").get(base)
        if not of_router.is_sonic:
            return row is None or row.get("admin_status", _UP) == _UP
        if row is None or (is_lag and "admin_status" not in row):
            return None
        return row.get("admin_status", _DOWN) == _UP


def _all(states: Sequence[bool | None]) -> bool | None:
    """Return whether all are true; None if that is not known."""
    if False in states:
        return False
    return None if None in states else True
