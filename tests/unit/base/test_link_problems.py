"""Problems of emulated links in their order, and flows that are not of hosts."""

from __future__ import annotations

from knotless.base.link_problems import link_problems
from knotless.base.pause_storms import name_flows
from knotless.base.probe_source import PROBE_SOURCE, of_hosts

PROBE = {"from": f"{PROBE_SOURCE.hex(':')}:00:00:02", "to": "01:80:c2:00:00:0e", "bytes": 64}
FLOW = {"from": "02:00:00:00:00:01", "to": "02:00:00:00:00:03", "bytes": 4000}


def test_a_deadlock_comes_first() -> None:
    status = {
        "problems": ["timers have lost precision"],
        "deadlock": {"cycle": ["s1:2/0", "s2:2/0"]},
    }
    assert link_problems(status) == [
        "deadlock: s1:2/0 waits for s2:2/0 waits for s1:2/0",
        "link emulator: timers have lost precision",
    ]
    assert link_problems({}) == []


def test_probes_are_no_flows() -> None:
    assert of_hosts([PROBE, FLOW]) == [FLOW]
    hosts = [{"flows": [dict(PROBE), dict(FLOW)]}]
    name_flows(hosts, {str(FLOW["from"]): "h1"})
    assert hosts[0]["flows"] == [{**FLOW, "from": "h1"}]
