"""The page in a browser: what a reader sees, and what a reader can do."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from knotless.results import recording
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.simulation import Load, Scenario, simulate
from knotless.simulation.recorder import Recorder
from knotless.topologies import load
from knotless.topologies.fabric import Fabric, Host, Link, Switch
from knotless.web.live import LiveFabric
from knotless.web.page_file import page_file
from knotless.web.replay import replay, verdict
from tests.browser.conftest import TOKEN, WIDTHS, Open, Scene
from tests.support import REPOSITORY
from tests.support.fake_fabric import CYCLE
from tests.support.page_server import served

Screenshot = Callable[[Page, str], None]
RECORDED = REPOSITORY / "docs" / "replays" / f"ring-deadlock{recording.SUFFIX}"


def cells(page: Page, row: str) -> list[str]:
    """Return the texts of a row of the table of channels."""
    row_of_channel = page.locator(
        "#channels tbody tr", has=page.get_by_role("button", name=row, exact=True)
    )
    return row_of_channel.first.locator("td").all_inner_texts()


@pytest.mark.smoke
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_knot_turns_red_and_is_explained(
    scene: Scene, open_page: Open, screenshot: Screenshot, width: int, scheme: str
) -> None:
    page = open_page(scene.url, width, scheme)
    expect(page.locator("h1")).to_contain_text("ring,4")
    expect(page.locator("#channels tbody tr")).to_have_count(16)
    scene.fake.pass_time(250_000, s1_2=0.75)
    expect(page.locator("#channels")).to_contain_text("sends")
    assert cells(page, "s1:2")[3] == "75"
    expect(page.locator("#knot")).to_be_hidden()
    scene.fake.freeze(100_000)
    expect(page.locator("#knot")).to_be_visible()
    expect(page.locator("#knot ol li")).to_have_count(4)
    expect(page.locator("#problems li").first).to_have_text(
        f"deadlock: {' waits for '.join([*CYCLE, CYCLE[0]])}"
    )
    expect(page.locator("#state li.bad")).to_have_text("\u2717 emulator: DEADLOCK")
    expect(page.locator("#knot .advice code").first).to_have_text("knotless release --name t")
    expect(page.locator("#knot .reason")).to_contain_text(
        "(engine dor) close this ring under PAUSE"
    )
    expect(page.locator("#knot")).to_contain_text("s1:2/0 (s1 \u2192 s2) waits for s2:2/0")
    expect(page.locator("#knot")).to_contain_text("h1 to h3 (4.0 kB)")
    expect(page.locator("#channels tr.in-the-knot")).to_have_count(4)
    assert cells(page, "s1:2")[1] == "in the knot"
    rows = page.locator("#channels tbody tr")
    assert rows.evaluate_all("rows => rows.slice(0, 4).map(row => row.className)") == (
        ["in-the-knot"] * 4
    )
    expect(page.locator("#picture .in-the-knot")).to_have_count(4)
    assert page.locator("#picture text.badge").all_text_contents() == ["1", "2", "3", "4"]
    expect(page.locator("#picture .wait-arrow")).to_have_count(4)
    expect(page.locator("#full")).to_have_text(
        "drawn full at 30.0 kB, the most that one held in the frames shown"
    )
    expect(page.locator("#knot")).to_contain_text("no frame leaves their queues")
    assert narrowest_text(page) >= 11
    overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert overflow <= 0
    screenshot(page, f"page-knot-{width}-{scheme}")
    scene.fake.deadlock = None
    scene.fake.pass_time(100_000)
    expect(page.locator("#knot")).to_be_hidden()
    expect(page.locator("#problems")).to_have_text("none")


CUT_CELLS = """cells => cells.filter(cell => {
  const [own, box] = [cell, cell.closest(".scroll")].map(of => of.getBoundingClientRect());
  return own.width === 0 || own.left < box.left || own.right > box.right + 0.5 ||
    cell.scrollWidth > cell.clientWidth + 1;
}).map(cell => cell.innerText)"""
LINES_OF_TEXT = """element => {
  const text = document.createRange();
  text.selectNodeContents(element);
  return text.getClientRects().length;
}"""


def test_no_column_is_cut(open_page: Open) -> None:
    with served(replay(recording.read(RECORDED))) as url:
        page = open_page(url)
        page.locator("#go-to-knot").click()
        expect(page.locator("#channels")).to_contain_text("waits for the knot")
        cells = page.locator("#channels :is(th, td)")
        expect(page.locator("#channels thead th")).to_have_count(9)
        for width in (320, *WIDTHS, 660, 760, 901, 1100, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            assert cells.evaluate_all(CUT_CELLS) == [], width
            dropped = page.get_by_role("button", name="Dropped")
            assert dropped.evaluate(LINES_OF_TEXT) == 1, f"a word is broken at {width} px"
            overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert overflow <= 0, width


def test_a_picture_that_comes_late_keeps_the_frame_that_was_chosen(open_page: Open) -> None:
    with served(replay(recording.read(RECORDED))) as url:
        page = open_page(url)
        counts, held = itertools.count(1), list[Route]()

        def hold_second(route: Route) -> None:
            if next(counts) == 2:
                held.append(route)
            else:
                route.continue_()

        asked = itertools.count(1)
        page.route("**/api/timeline", hold_second)
        with page.expect_request(
            lambda request: request.url.endswith("/api/timeline") and next(asked) == 2
        ):
            page.reload()
        page.locator("#go-to-knot").click()
        expect(page.locator("#knot")).to_be_visible()
        shown = page.evaluate("Number(document.documentElement.dataset.frames)")
        held[0].continue_()
        page.wait_for_function(
            "shown => Number(document.documentElement.dataset.frames) > shown", arg=shown
        )
        expect(page.locator("#knot")).to_be_visible()


def narrowest_text(page: Page) -> float:
    """Return the height of the smallest text in the picture, in pixels of the screen."""
    heights = page.locator("#picture text").evaluate_all(
        "texts => texts.map(text => text.getBoundingClientRect().height)"
    )
    return float(min(heights))


def test_every_colour_of_the_picture_has_a_legend(scene: Scene, open_page: Open) -> None:
    page = open_page(scene.url)
    expect(page.locator("#channels tbody tr")).to_have_count(16)
    legend = page.locator(".legend")
    for text in (
        *("idle", "sends", "paused at times", "paused: may not send", "in the knot", "cut"),
        *("waits for the knot", "waits for this channel", "cycle of a verdict", "buffer of"),
        *("switch", "host", "switch without controller"),
    ):
        expect(legend.get_by_text(text, exact=False).first).to_be_visible()


@pytest.mark.smoke
def test_probes_move_no_channel(scene: Scene, open_page: Open) -> None:
    page = open_page(scene.url)
    expect(page.locator("#channels tbody tr")).to_have_count(16)
    scene.fake.send_probes("s1:2", 3)
    scene.fake.pass_time(250_000, s3_2=0.5)
    expect(page.locator("#channels tbody tr.sends")).to_have_count(1)
    expect(page.locator("#channels tbody tr.idle")).to_have_count(15)


def test_what_became_of_the_routes_is_said(scene: Scene, open_page: Open) -> None:
    page = open_page(scene.url)
    scene.fake.problems = ["link s1:2-s2:3 is down"]
    scene.fake.last_change = {
        **{"failed": ["s1:2-s2:3"], "drained": [], "rules_changed": 8, "seconds": 0.021},
        **{"time": 1.0, "tier": 1, "repair": "repaired"},
    }
    expect(page.locator("#problems li")).to_have_text("controller: link s1:2-s2:3 is down")
    expect(page.locator("#notes")).to_have_text(
        "routes: repaired: they avoid s1:2-s2:3; 8 rules in 21 ms; all hosts are reached"
    )


def test_the_slider_shows_the_past(scene: Scene, open_page: Open) -> None:
    page = open_page(scene.url)
    scene.fake.pass_time(250_000, s1_2=0.5)
    expect(page.locator("#channels")).to_contain_text("sends")
    first = page.locator("#time").get_attribute("max")
    assert first is not None
    scene.fake.freeze(100_000)
    expect(page.locator("#knot")).to_be_visible()
    page.locator("#time").fill(first)
    expect(page.locator("#knot")).to_be_hidden()
    expect(page.locator("#channels")).to_contain_text("sends")
    expect(page.locator("#live")).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name="Go to the deadlock").click()
    expect(page.locator("#knot")).to_be_visible()
    page.locator("#live").click()
    scene.fake.deadlock = None
    scene.fake.pass_time(100_000)
    expect(page.locator("#knot")).to_be_hidden()


def test_an_answer_older_than_a_frame_does_not_forget_it(scene: Scene, open_page: Open) -> None:
    page = open_page(scene.url)
    scene.fake.pass_time(250_000, s1_2=0.5)
    expect(page.locator("#channels")).to_contain_text("sends")
    held: list[tuple[Route, APIResponse]] = []
    page.route("**/api/timeline", lambda route: held.append((route, route.fetch())), times=2)
    page.reload()
    while len(held) < 2:  # the page asks for itself, and when it hears which picture is shown
        page.wait_for_timeout(10)
    scene.fake.freeze(100_000)
    expect(page.locator("#knot")).to_be_visible()
    shown = page.evaluate("Number(document.documentElement.dataset.frames)")
    for route, answer in held:
        route.fulfill(response=answer)
    page.wait_for_function(
        "shown => Number(document.documentElement.dataset.frames) > shown", arg=shown
    )
    expect(page.get_by_role("button", name="Go to the deadlock")).to_be_visible()


def test_the_table_by_keyboard(scene: Scene, open_page: Open) -> None:
    page = open_page(scene.url)
    scene.fake.pass_time(250_000, s1_2=0.5, s3_2=0.9)
    expect(page.locator("#channels")).to_contain_text("sends")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.locator("#search").focus()
    page.keyboard.type("sends")
    expect(page.locator("#count")).to_have_text("2 of 2 rows")
    heading = page.get_by_role("columnheader", name="Load %")
    for _ in range(20):
        page.keyboard.press("Tab")
        if heading.locator("button").evaluate("button => button === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(heading).to_have_attribute("aria-sort", "descending")
    expect(page.locator("#channels tbody tr").first).to_contain_text("s3:2")
    page.keyboard.press("Enter")
    expect(page.locator("#channels tbody tr").first).to_contain_text("s1:2")
    page.get_by_role("button", name="s3:2", exact=True).press("Enter")
    expect(page.locator("#channels tr.chosen")).to_contain_text("s3:2")
    expect(page.locator("#link")).to_have_value("s3:2-s4:3")


def test_the_page_says_what_is_lost_and_recovers(scene: Scene, open_page: Open) -> None:
    page = open_page(scene.url)
    status = page.locator("#state")
    expect(status).to_contain_text("controller: ready, dor, pause")
    expect(status).to_contain_text("emulator: valid")
    for part in ("emulator", "controller"):
        scene.end(part)
        expect(status.locator("li.bad", has_text=f"{part}: the ")).to_contain_text("not answer")
        scene.start(part)
        expect(status.locator("li.bad")).to_have_count(0)
    scene.names.state_file.unlink()
    expect(status).to_contain_text("no fabric 't' is running")
    scene.up()
    expect(status.locator("li.bad")).to_have_count(0)
    scene.fake.switches["s2"]["connected"] = False
    expect(page.locator("#switches")).to_contain_text("not connected")


def test_the_page_survives_its_server(scene: Scene, open_page: Open) -> None:
    source = LiveFabric(scene.names)
    with served(source) as url:
        page = open_page(url)
        expect(page.locator("#state")).to_contain_text("emulator: valid")
    expect(page.locator("#state")).to_contain_text("the server does not answer")
    port = int(url.rstrip("/").rpartition(":")[2])
    with served(LiveFabric(scene.names), port):
        expect(page.locator("#state")).to_contain_text("emulator: valid")
        scene.fake.pass_time(250_000, s1_2=0.5)
        expect(page.locator("#channels")).to_contain_text("sends")


@pytest.mark.smoke
def test_actions_need_the_token_which_is_in_no_address(scene: Scene, open_page: Open) -> None:
    page = open_page(scene.url)
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    expect(page.locator("#actions")).to_be_visible()
    expect(page.locator("#token-hint")).to_have_text(
        f"printed by: sudo cat {scene.names.token_file}"
    )
    page.locator("#engine").fill("updown")
    page.locator("#change-preview").click()
    expect(page.locator("#result")).to_contain_text("with the right token")
    assert scene.fake.requests == []
    page.locator("#token").fill(TOKEN)
    page.locator("#change-preview").click()
    expect(page.locator("#result")).to_have_text("change: preview, in one step, 4 rules change")
    assert scene.fake.requests == [("/change", {"engine": "updown", "dry_run": True})]
    page.locator("#link").fill("s1-s9")
    page.locator("#cut").click()
    expect(page.locator("#result")).to_contain_text("cut: no link 's1-s9'")
    assert addresses
    assert not [url for url in addresses if TOKEN in url]


def test_a_recording_is_replayed(open_page: Open, screenshot: Screenshot, tmp_path: Path) -> None:
    plan = make_plan(
        load("ring,4"), PlanRequest.from_options(engine="dor", vcs=1, select="low-port")
    )
    recorder = Recorder(every_us=10_000)
    scenario = Scenario(plan, "shift:2", Load("saturate"), duration_us=200_000.0)
    recorded = recorder.recording(simulate(scenario, None, recorder.run))
    path = tmp_path / f"ring{recording.SUFFIX}"
    recording.write(path, recorded)
    with served(replay(recording.read(path))) as url:
        page = open_page(url)
        expect(page.locator("#source")).to_contain_text("simulation of shift:2")
        expect(page.locator("#live")).to_be_hidden()
        expect(page.locator("#actions")).to_be_hidden()
        expect(page.locator("#time-text")).to_have_text("virtual time 0.010 s")
        page.locator("#play").click()
        expect(page.locator("#knot")).to_be_visible()
        expect(page.locator("#play")).to_have_text("Play")
        expect(page.locator("#knot")).to_contain_text("frames")
        screenshot(page, "page-replay")


def test_a_verdict_shows_its_cycle(open_page: Open, screenshot: Screenshot) -> None:
    content = {
        **{"acyclic": False, "flow_control": "pause", "cycle": CYCLE},
        "witnesses": [{"source": "h1", "destination": "h3"}] * 4,
    }
    with served(verdict(load("ring,4"), content)) as url:
        page = open_page(url)
        expect(page.locator("#verdict")).to_contain_text(
            f"CAN DEADLOCK under PAUSE: {CYCLE[0]} -> "
        )
        expect(page.locator("#verdict")).to_contain_text(
            "s1:2/0 can wait for s2:2/0, for example with a frame of h1 to h3"
        )
        expect(page.locator("#time-panel")).to_be_hidden()
        screenshot(page, "page-verdict")


@pytest.mark.smoke
def test_names_are_never_code(open_page: Open) -> None:
    name = "<script>alert(1)</script>"
    bad = "<img src=x onerror=alert(2)>"
    switches = (Switch(name, 1), Switch(bad, 2))
    host = Host("h1", "02:00:00:00:00:01", "10.0.0.1", name, 1)
    fabric = Fabric(name, switches, (host,), (Link(name, 2, bad, 1),))
    content = {"acyclic": False, "flow_control": "pause", "cycle": [f"{name}:2/0"], "witnesses": []}
    with served(verdict(fabric, content)) as url:
        page = open_page(url)
        expect(page.locator("h1")).to_contain_text(name)
        expect(page.locator("#channels")).to_contain_text(f"{name}:2")
        expect(page.locator("#verdict li")).to_contain_text(name)
        assert page.locator("img, main script").count() == 0
        assert re.match(re.escape(name), page.title())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_file_is_played_without_a_server(
    open_page: Open, screenshot: Screenshot, tmp_path: Path, width: int, scheme: str
) -> None:
    path = tmp_path / "ring.html"
    path.write_text(page_file(recording.read(RECORDED)))
    page = open_page(path.as_uri(), width, scheme)
    expect(page.locator("#picture .sends").first).to_be_visible()
    expect(page.locator("#time-text")).to_have_text(re.compile(r"^[\d.]+ s of virtual time$"))
    expect(page.locator("#knot")).to_be_hidden()
    page.locator("#time").fill(str(int(page.locator("#time").get_attribute("max") or 0) - 15))
    page.locator("#play").click()
    expect(page.locator("#time-text")).to_contain_text("frozen")
    expect(page.locator("#picture text.badge")).to_have_count(4)
    expect(page.locator("#knot ol li").first).to_contain_text("s1:2/0 (s1 \u2192 s2) waits for")
    expect(page.locator("#play")).to_have_text("Play")
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert narrowest_text(page) >= 11
    screenshot(page, f"replay-{width}-{scheme}")
