"""The page of a real fabric: a link that is cut from the page, and the repair that it shows."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from knotless.emulation.names import Names
from knotless.emulation.requirements import why_not
from tests.browser.conftest import Open
from tests.support.fabric_fixtures import FREE_PORTS, Knotless, Remains, knotless, names, remains

__all__ = ["knotless", "names", "remains"]

LIMIT_MS = 40_000


@pytest.fixture
def url(names: Names, knotless: Knotless, remains: Remains) -> Iterator[str]:
    """A ring with routes that cannot deadlock, and its page."""
    if reason := why_not():
        pytest.skip(reason)
    words = ("up", "ring,4", "--engine", "updown", "--name", names.name, *FREE_PORTS)
    done = knotless(*words, "--web", "--web-port", "0", "--json")
    try:
        assert done.returncode == 0, done.stderr
        yield json.loads(done.stdout)["web"]
    finally:
        knotless("down", "--name", names.name)
    assert remains(names) == []


def test_a_cut_and_its_repair_are_seen(url: str, names: Names, open_page: Open) -> None:
    page = open_page(url)
    page.set_default_timeout(LIMIT_MS)
    expect.set_options(timeout=LIMIT_MS)
    expect(page.locator("#state")).to_contain_text("controller: ready, updown, pause")
    expect(page.locator("#changes")).to_have_text("none")
    page.locator("#token").fill(names.token_file.read_text().strip())
    page.locator("#pattern").fill("shift:1")
    page.locator("#rate").fill("2")
    page.locator("#traffic-start").click()
    expect(page.locator("#state")).to_contain_text("traffic: shift:1, 4 flows, 2 Mbit/s a host")
    rows = page.locator("#channels tbody tr")
    expect(rows.filter(has_text="h1 \u2192 s1")).to_contain_text("sends")

    page.locator("#link").fill("s1-s2")
    page.locator("#cut").click()
    expect(page.locator("#result")).to_have_text("cut: s1:2-s2:3 is cut")
    expect(page.locator("#problems")).to_contain_text("link s1:2-s2:3 is down")
    repair = page.locator("#changes > li").first
    expect(repair).to_contain_text("avoids s1:2-s2:3")
    expect(repair).to_contain_text("change record: proven")
    expect(rows.filter(has_text="s1 \u2192 s2")).to_contain_text("cut")
    # What went from h1 to h2 over the cut link takes the other way round.
    expect(rows.filter(has_text="s1 \u2192 s4")).to_contain_text("sends")

    page.locator("#mend").click()
    expect(page.locator("#problems")).not_to_contain_text("is down")
    expect(page.locator("#changes > li")).not_to_have_count(1)
    expect(rows.filter(has_text="s1 \u2192 s2")).to_contain_text("sends")
    page.locator("#traffic-stop").click()
    expect(page.locator("#state")).not_to_contain_text("traffic:")
