"""The page in Chromium with WebGL in software: frames a second of a large replay, and reactions.

    .venv/bin/python -m tests.measure_page RECORDING
    .venv/bin/python -m tests.measure_page

With a recording, plays it for ten seconds; a large one is made by
``knotless simulate random,1000,degree=8,hosts=1 --engine updown --pattern uniform --load 0.5
--rate 10000 --delay 1 --duration 2000 --every 20 --record large.channels.parquet``. Without one,
measures the time from the detection of a deadlock by a (fake) emulator until the page shows it,
ten times, and the processor time of the server while a fabric of 16 switches is shown.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import click
import psutil
from playwright.sync_api import Page, sync_playwright

from bench.entry import run_benchmark
from emulation import names as names_module
from emulation import processes, state
from emulation.cuts import Cables
from emulation.names import Names
from emulation.state import State
from runs import recording
from tests.fake_fabric import FakeFabric
from tests.page_server import CHROMIUM, FLAGS, served
from topologies import load
from topologies.formats import files
from web.live import LiveFabric
from web.replay import replay

PLAY_S = 10.0
REPEATS = 10
WATCH_S = 20.0
MEASURE = """seconds => new Promise(done => {
  const gaps = [], shown = Number(document.documentElement.dataset.frames);
  let last = performance.now();
  const end = last + 1000 * seconds;
  const tick = now => {
    gaps.push(now - last);
    last = now;
    if (now < end) requestAnimationFrame(tick);
    else done({
      gaps, shown: Number(document.documentElement.dataset.frames) - shown,
      script: Number(document.documentElement.dataset.frameMs),
    });
  };
  requestAnimationFrame(tick);
})"""


def played(page: Page, path: str) -> dict[str, Any]:
    """Play a recording and return the frame rate."""
    found = recording.read(path)
    with served(replay(found)) as url:
        page.goto(url)
        page.locator("#channels tbody tr").first.wait_for(timeout=120_000)
        page.locator("#play").click()
        before = _processor_s()
        result = page.evaluate(MEASURE, PLAY_S)
        used = {kind: after - before.get(kind, 0.0) for kind, after in _processor_s().items()}
    gaps = sorted(result["gaps"])
    return {
        "switches": len(found.fabric["switches"]),
        "channels": len(found.channels),
        "frames_per_s": round(result["shown"] / (sum(gaps) / 1000), 1),
        "browser_frame_ms_median": round(statistics.median(gaps), 1),
        "browser_frame_ms_p95": round(gaps[int(0.95 * len(gaps))], 1),
        "script_ms_per_frame": result["script"],
        "processor_ms_per_frame": {
            kind: round(1000 * seconds / max(1, result["shown"]), 1)
            for kind, seconds in used.items()
        },
    }


def _processor_s() -> dict[str, float]:
    """Return the processor time of Chromium's processes by kind; drawing is in ``gpu-process``."""
    found: dict[str, float] = defaultdict(float)
    for process in psutil.Process().children(recursive=True):
        words = " ".join(process.cmdline()).split("--type=")
        if "chromium" in words[0]:
            kind = words[1].split()[0] if len(words) > 1 else "browser"
            found[kind] += sum(process.cpu_times()[:2])
    return dict(found)


def reactions(page: Page) -> dict[str, Any]:
    """Return how long a detected deadlock takes to be shown, and what the server costs."""
    with tempfile.TemporaryDirectory() as folder:
        names_module.RUN_DIRECTORY = Path(folder)
        setattr(Cables, "cuts", lambda _: [])  # noqa: B010 - a fake has no cables
        names = Names("t")
        names.directory.mkdir()
        return {**_reaction_times(page, names), **_server_cost(page, names)}


def _up(names: Names, fake: FakeFabric, started_at: float) -> None:
    settings = {"links": "emulated", "controller": "none", "rest_port": 1}
    owner = processes.ourselves()
    names.fabric_file.write_text(json.dumps(files.to_json(fake.fabric)))
    found = State("t", fake.fabric.name, owner, "ready", started_at, settings=settings)
    state.write(names, found)


def _reaction_times(page: Page, names: Names) -> dict[str, Any]:
    fake = FakeFabric(load("ring,4"))
    _up(names, fake, 1.0)
    times_ms = []
    with fake.emulator(names.emulator_socket), served(LiveFabric(names)) as url:
        page.goto(url)
        page.locator("#channels tbody tr").first.wait_for()
        for _ in range(REPEATS):
            page.evaluate(
                """() => { window.red = new Promise(done => {
                  const root = document.documentElement;
                  new MutationObserver((_, it) => {
                    if (root.classList.contains("deadlock")) {
                      it.disconnect();
                      requestAnimationFrame(() => setTimeout(() => done(Date.now())));
                    }
                  }).observe(root, { attributes: true });
                }); }"""
            )
            began = time.time()
            fake.freeze(100_000)
            times_ms.append(page.evaluate("() => window.red") - 1000 * began)
            fake.deadlock = None
            fake.pass_time(100_000)
            page.locator("#knot").wait_for(state="hidden")
    return {
        "red_after_ms_median": round(statistics.median(times_ms)),
        "red_after_ms_longest": round(max(times_ms)),
    }


def _server_cost(page: Page, names: Names) -> dict[str, Any]:
    fake = FakeFabric(load("torus,4,4"))
    _up(names, fake, 2.0)
    counters, status = (fake.answer({"do": do}) for do in ("counters", "status"))
    answers = {"counters": counters, "status": status}

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        counters["now_us"] += 1000
        for channel in counters["channels"]:
            channel["priorities"][0]["tx_bytes"] += 700
            channel["priorities"][0]["tx_frames"] += 1
            channel["tx_frames"] += 1
        return answers[request["do"]]

    fake.answer = answer  # type: ignore[method-assign]
    with fake.emulator(names.emulator_socket), served(LiveFabric(names)) as url:
        page.goto(url)
        page.locator("#channels tbody tr").first.wait_for()
        page.wait_for_timeout(2000)
        began = time.process_time()
        page.wait_for_timeout(1000 * WATCH_S)
        used_s = time.process_time() - began
    # The fake emulator, which computes and writes its answers, is in this process as well.
    return {"server_and_fake_emulator_share_of_a_core": round(used_s / WATCH_S, 4)}


@click.command()
@click.argument("path", required=False)
def main(path: str | None) -> None:
    """Measure the page in Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        found = reactions(page) if path is None else played(page, path)
        browser.close()
    click.echo(json.dumps(found, indent=1))


if __name__ == "__main__":
    run_benchmark(main)
