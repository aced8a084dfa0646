"""Tests of the page in Debian's Chromium; without it they are skipped with a message."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from knotless.emulation import names as names_module
from knotless.emulation import processes, state
from knotless.emulation.cuts import Cables
from knotless.emulation.names import Names
from knotless.emulation.state import State
from knotless.topologies import load
from knotless.topologies.formats import files
from knotless.web import controller as controller_module
from knotless.web import live
from knotless.web.live import LiveFabric
from tests.support.fake_fabric import FakeFabric
from tests.support.page_server import CHROMIUM, FLAGS, served

WIDTHS = (1400, 390)
TOKEN = "a-token-of-this-test"  # noqa: S105 - of this test only

LIMIT_MS = 60_000
"""For what a page is to show: far more than it takes on a machine that does other things too."""
expect.set_options(timeout=LIMIT_MS)

Open = Callable[..., Page]


# Not for the session: while Playwright runs, no other test could use asyncio.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, with WebGL in software."""
    if not os.access(CHROMIUM, os.X_OK):
        pytest.skip(f"needs {CHROMIUM}: apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open pages; at the end none may have complained or asked another host."""
    complaints: list[str] = []
    hosts: set[str | None] = set()
    contexts = []

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def opened(url: str, width: int = 1400, scheme: Any = "light", **more: Any) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, **more
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(LIMIT_MS)
        page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", hear)
        page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert hosts <= {"127.0.0.1", None}
    # A connection that is refused, or an answer such as 401, is no mistake of the page.
    assert [text for text in complaints if "Failed to load resource" not in text] == []


@dataclass
class Scene:
    """A fake ring, its page, and what of it runs; a test ends and starts parts."""

    fake: FakeFabric
    names: Names
    url: str = ""
    parts: dict[str, ExitStack] = field(default_factory=dict)
    rest_port: int = 0

    def start(self, part: str) -> None:
        """Start ``emulator`` or ``controller``."""
        stack = self.parts[part] = ExitStack()
        if part == "emulator":
            stack.enter_context(self.fake.emulator(self.names.emulator_socket))
        else:
            self.rest_port = stack.enter_context(self.fake.controller(self.rest_port))

    def end(self, part: str) -> None:
        """End a part."""
        self.parts.pop(part).close()

    def up(self) -> None:
        """Make the fabric seem to run."""
        settings = {"links": "emulated", "controller": "ryu", "rest_port": self.rest_port}
        owner = processes.ourselves()
        stored = State(self.names.name, "ring,4", owner, "ready", 1.0, settings=settings)
        self.names.fabric_file.write_text(json.dumps(files.to_json(self.fake.fabric)))
        state.write(self.names, stored)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """A page of a ring that runs."""
    monkeypatch.setattr(names_module, "RUN_DIRECTORY", tmp_path)
    monkeypatch.setattr(Cables, "cuts", lambda _: [])
    monkeypatch.setattr(live, "RETRY_S", 0.1)
    monkeypatch.setattr(controller_module, "POLL_S", 0.2)
    prepared = Scene(FakeFabric(load("ring,4")), Names("t"))
    prepared.names.directory.mkdir()
    prepared.names.token_file.write_text(f"{TOKEN}\n")
    for part in ("controller", "emulator"):
        prepared.start(part)
    prepared.up()
    with served(LiveFabric(prepared.names)) as url:
        prepared.url = url
        yield prepared
    for stack in prepared.parts.values():
        stack.close()


@pytest.fixture
def screenshot() -> Callable[[Page, str], None]:
    """Store a picture of a page for the documentation, in KNOTLESS_SCREENSHOTS if that is set."""

    def store(page: Page, name: str) -> None:
        folder = os.environ.get("KNOTLESS_SCREENSHOTS")
        if folder:
            # Readers see the path of a fabric of theirs, not that of a test.
            page.locator("#token-hint").evaluate_all(
                "hints => hints.forEach(hint => { hint.textContent ="
                " hint.textContent.replace(/[/].*(?=[/]t[/]rest-token)/, '/run/knotless'); })"
            )
            page.screenshot(path=str(Path(folder, f"{name}.png")), full_page=True)

    return store
