"""``mn --custom topologies/mn.py``, executed as Mininet does, by the system's Python."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from knotless.topologies import load
from tests.support import REPOSITORY
from tests.support.waiting import HANG_S

SYSTEM_PYTHON = "/usr/bin/python3"

pytestmark = pytest.mark.skipif(
    not Path("/usr/lib/python3/dist-packages/mininet").exists(), reason="needs Debian's Mininet"
)

# The same as mn's parseCustomFile and buildTopo, from another directory, without our packages.
AS_MININET = """
import json, sys
from mininet.util import buildTopo
path, spec = sys.argv[1:]
customs = {}
exec(compile(open(path).read(), path, 'exec'), customs, customs)
topo = buildTopo(customs['topos'], spec)
links = [(a, i['port1'], b, i['port2']) if i['node1'] == a else (a, i['port2'], b, i['port1'])
         for a, b, i in topo.links(withInfo=True)]
print(json.dumps({
    'topos': sorted(customs['topos']),
    'switches': {s: topo.nodeInfo(s)['dpid'] for s in topo.switches()},
    'hosts': {h: [topo.nodeInfo(h)['mac'], topo.nodeInfo(h)['ip']] for h in topo.hosts()},
    'links': links,
}))
"""


def _mininet(spec: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SYSTEM_PYTHON, "-I", "-c", AS_MININET, str(REPOSITORY / "topologies" / "mn.py"), spec],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )


@pytest.mark.parametrize("spec", ["torus,4,4", "mesh,3,2,hosts=2", "ring,3,rate=5"])
def test_mininet_builds_our_fabric(spec: str, tmp_path: Path) -> None:
    done = _mininet(spec, tmp_path)
    assert done.returncode == 0, done.stderr
    topo = json.loads(done.stdout)
    fabric = load(spec)
    assert topo["switches"] == {s.name: f"{s.dpid:016x}" for s in fabric.switches}
    assert topo["hosts"] == {host.name: [host.mac, f"{host.ip}/8"] for host in fabric.hosts}
    cables = {frozenset([(a, i), (b, j)]) for a, i, b, j in topo["links"]}
    wanted = {frozenset([(li.a, li.a_port), (li.b, li.b_port)]) for li in fabric.links}
    wanted |= {frozenset([(h.name, 0), (h.switch, h.port)]) for h in fabric.hosts}
    assert cables == wanted
    assert {"flat", "mesh", "mtree", "ring", "torus"} <= set(topo["topos"])


def test_a_bad_spec_ends_mininet_with_one_line(tmp_path: Path) -> None:
    done = _mininet("ring,2", tmp_path)
    assert done.returncode == 2
    assert done.stderr == "knotless: ring,2: a ring has at least 3 switches, not 2\n"
