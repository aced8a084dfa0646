"""Three SONiC routers in a triangle, read from files, of which single fields are changed.

``control-knot`` sends all transit clockwise, so it can deadlock; in ``control-safe`` both
neighbours are reached directly. Both have buffers for priorities 3 and 4.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "fabrics"
ROUTERS = ("r0", "r1", "r2")
Config = dict[str, Any]


def changed(
    folder: Path,
    base: str,
    config: Callable[[Config], object] = lambda _: None,
    *,
    appl: Callable[[Config], object] = lambda _: None,
    routers: tuple[str, ...] = ROUTERS,
) -> Path:
    """Write a fabric in which ``config`` and ``appl`` have changed the tables of ``routers``."""
    for router in ROUTERS:
        (folder / router).mkdir(parents=True, exist_ok=True)
        for name, change in (("config_db.json", config), ("appl_db.json", appl)):
            tables = json.loads((DATA / base / router / name).read_text())
            if router in routers:
                change(tables)
            (folder / router / name).write_text(json.dumps(tables))
    return folder


def trust_pcp(tables: Config) -> None:
    """Let all ports trust the PCP, as SONiC's template does for storage back ends."""
    del tables["DSCP_TO_TC_MAP"]
    classes = {str(pcp): str({0: 1, 1: 0}.get(pcp, pcp)) for pcp in range(8)}
    tables["DOT1P_TO_TC_MAP"] = {"P": classes}
    for fields in tables["PORT_QOS_MAP"].values():
        del fields["dscp_to_tc_map"]
        fields["dot1p_to_tc_map"] = "P"


def watch(action: str) -> Callable[[Config], object]:
    """Return a change that adds a watchdog with an action to all ports between switches."""
    fields = {"action": action, "detection_time": "200"}
    return lambda tables: tables.update(PFC_WD={"Ethernet0": fields, "Ethernet4": fields})
