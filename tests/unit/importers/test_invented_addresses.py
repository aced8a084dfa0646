"""Hosts of fabrics of others have numbers in the place of IP addresses, which nothing may check."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan

DATA = Path(__file__).parents[2] / "data" / "fabrics"


@pytest.mark.parametrize(
    "source", ["clos-frr", "control-safe", "port-names", "adaptive-ring", "sharp.ibnetdiscover"]
)
def test_imported_addresses_are_invented(source: str) -> None:
    fabric = read_paths([DATA / source]).fabric
    assert fabric.hosts
    assert all(host.ip_invented for host in fabric.hosts)
    checked = compile_rules(make_plan(fabric, "updown", source_check="ip"))
    assert checked.is_compiled_alike(compile_rules(make_plan(fabric, "updown")))
