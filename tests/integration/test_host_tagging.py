"""Hosts whose network interface, the link emulator, tags their frames by destination."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

from knotless.emulation.names import Names
from knotless.routing.plan import make_plan
from knotless.topologies import load
from tests.support.all_pairs import missing_pairs
from tests.support.waiting import LIMIT_S

Knotless = Callable[..., subprocess.CompletedProcess[str]]
SPEC, ENGINE = "ring,4,hosts=2", "updown"


def test_all_talk_in_the_vlans_that_are_planned(knotless: Knotless, names: Names) -> None:
    fabric = load(SPEC)
    tags = make_plan(fabric, ENGINE, tagging="host").host_tags()
    assert tags is not None
    assert any(len(own) > 1 for own in tags.values())
    up = ("up", SPEC, "--engine", ENGINE, "--tagging", "host", "--name", names.name)
    started = knotless(*up, "--port", "0", "--rest-port", "0")
    assert started.returncode == 0, started.stderr
    try:
        spaces = {host.name: names.host_namespace(host.name) for host in fabric.hosts}
        addresses = {host.name: host.ip for host in fabric.hosts}
        # Switches admit no untagged frames and no frames in other VLANs than planned.
        assert missing_pairs(spaces, addresses, LIMIT_S) == set()
        live = knotless("check", "--live", "--name", names.name, "--json")
        assert live.returncode == 0, live.stderr + live.stdout
        assert json.loads(names.tags_file.read_text()) == tags
        names.tags_file.unlink()
        untagged = knotless("check", "--live", "--name", names.name, "--json")
        assert json.loads(untagged.stdout)["undelivered"] == 8 * 7
    finally:
        down = knotless("down", "--name", names.name)
    assert down.returncode == 0, down.stderr


def test_plain_links_have_no_interface_that_tags(knotless: Knotless, names: Names) -> None:
    done = knotless("up", SPEC, "--tagging", "host", "--links", "plain", "--name", names.name)
    assert done.returncode == 2
    assert "tagging by hosts needs emulated links" in done.stderr
    assert not names.directory.exists()


def test_no_second_tag_comes_in_under_the_planned_one(knotless: Knotless, names: Names) -> None:
    """The same with tree VLANs: probes use the plan that is running."""
    up = ("up", "mesh,2,2", "--engine", "dor", "--tagging", "host", "--vlans", "tree")
    started = knotless(*up, "--port", "0", "--rest-port", "0", "--name", names.name)
    assert started.returncode == 0, started.stderr
    try:
        done = knotless("probe", "--name", names.name, "--only", "forgery", "--json")
        findings = json.loads(done.stdout)["findings"]
        assert sum("tagged twice" in finding["subject"] for finding in findings) == 2
        assert [finding for finding in findings if not finding["ok"]] == []
    finally:
        down = knotless("down", "--name", names.name)
    assert down.returncode == 0, down.stderr
