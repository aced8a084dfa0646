"""The documentation as a site: it builds without warnings, and its pages load nothing elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support import REPOSITORY

pytestmark = pytest.mark.deep

LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""Elements whose address a browser loads by itself, unlike that of a plain link."""


class Addresses(HTMLParser):
    """The addresses that a page loads, its links, and the ids in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: set[str] = set()
        self.links: set[str] = set()
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        if "id" in given:
            self.ids.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if LOADING.get(tag) in given:
            self.loaded.add(given[LOADING[tag]])


# With --quiet, warnings would not be counted, so that strict mode would let them pass.
def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-f", config, "-d", site],
        cwd=REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Addresses]:
    """Build the site, which runs the commands on its pages; return what each page refers to."""
    folder = tmp_path_factory.mktemp("site")
    done = build(REPOSITORY / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path: Addresses(path.read_text()) for path in folder.rglob("*.html")}


def test_every_page_of_the_repository_is_on_the_site(site: dict[Path, Addresses]) -> None:
    written = len(list((REPOSITORY / "docs").rglob("*.md")))
    assert len(site) > written


def test_pages_load_nothing_from_other_hosts(site: dict[Path, Addresses]) -> None:
    for path, addresses in site.items():
        assert {address for address in addresses.loaded if urlsplit(address).netloc} == set(), path
    sheets = {sheet for path in site for sheet in path.parent.glob("**/*.css")}
    assert sheets
    for sheet in sheets:
        assert re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", sheet.read_text()) == []


def test_links_lead_to_files_and_ids_that_exist(site: dict[Path, Addresses]) -> None:
    folder = next(path.parent for path in site if path.name == "404.html")
    for path, addresses in site.items():
        if path.name == "404.html":
            continue  # its links are those of the root
        for address in addresses.links | addresses.loaded:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), (path.relative_to(folder), address)
            if parts.fragment and target in site:
                assert unquote(parts.fragment) in site[target].ids, (path, address)


def test_a_dead_link_and_a_command_that_fails_end_the_build(tmp_path: Path) -> None:
    pages = tmp_path / "docs"
    pages.mkdir()
    config = tmp_path / "mkdocs.yml"
    hook = tmp_path / "hook.py"
    hook.write_text("from docs.generator.hooks import on_page_markdown\n")
    config.write_text(f"site_name: x\nstrict: true\nhooks: [{hook}]\nplugins: []\n")
    for text, complaint in (
        ("[nothing](nothing.md)", "nothing.md"),
        ("```sh run\nknotless plan ring,2\n```\n", "has exit status 2, not 0"),
        ("```sh run exit=1\nknotless --version\n```\n", "has exit status 0, not 1"),
    ):
        (pages / "index.md").write_text(text)
        done = build(config, tmp_path / "site")
        assert done.returncode != 0
        assert complaint in done.stdout + done.stderr
