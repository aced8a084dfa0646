"""The page on proofs shows what the verifier prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.importers.route_tables import PlainRoute, RouteTables
from knotless.importers.subnet_tables import SubnetTables
from tests.support import REPOSITORY
from tests.support.proofs import BUILT, run

PAGE = REPOSITORY / "docs/explanation/proof.md"


@BUILT
def test_the_page_shows_what_verify_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text().partition("## Fabrics of routers")[0]
    for command in re.findall(r"^knotless ((?:flows|check) .*)", text, re.MULTILINE):
        assert CliRunner().invoke(main, command.split()).exit_code == 0
    shown = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert shown == [run("rules", "ring.proof").text]


def shown_in(section: str) -> list[str]:
    """Return the texts that a section of the page shows."""
    text = PAGE.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_page_shows_routes_as_they_are_written() -> None:
    routes = {
        "10.0.0.0/24": PlainRoute("via", ("Ethernet0", "Ethernet4")),
        "10.1.0.2/31": PlainRoute("link", ("Ethernet0",)),
        "10.1.0.3/32": PlainRoute("local"),
        "10.2.0.0/16": PlainRoute("drop"),
    }
    files = RouteTables((), {}, {"leaf0": routes}, lambda _: ()).files("net", {})
    assert [files["leaf0.routes"]] == shown_in("Fabrics of routers")


def test_the_page_shows_tables_of_lids_as_they_are_written() -> None:
    tables = SubnetTables(
        (),
        (),
        {"leaf0": {7: (13,), 8: (13, 14), 2: (0,)}},
        {"leaf0": {(1, 13): (*range(8), *range(8))}},
        {"leaf0": {(5, 3): (7, 8)}},
    )
    assert [tables.files("net", {})["leaf0.lft"]] == shown_in("InfiniBand subnets")
