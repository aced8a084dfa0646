"""The page in Chromium with WebGL in software: frames a second of a large replay, and reactions.

    .venv/bin/python -m tests.measure_page --json > docs/benchmarks/page-browser.json
    .venv/bin/python -m tests.measure_page --table docs/benchmarks/page-browser.json

Plays a recording of 1,000 switches and 10,000 channels for four seconds, in two configurations of
Chromium; then, for a (fake) emulator, measures the time from the detection of a deadlock until the
page shows it, ten times, and the processor time of the server while it shows 16 switches.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import psutil
from playwright.sync_api import Page, sync_playwright

from bench.support.entry import about, as_stored, machine_line, run_benchmark, table_option
from knotless.emulation import names as names_module
from knotless.emulation import processes, state
from knotless.emulation.cuts import Cables
from knotless.emulation.names import Names
from knotless.emulation.state import State
from knotless.results import recording
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.simulation import Load, Scenario, simulate
from knotless.simulation.recorder import Recorder
from knotless.topologies import load
from knotless.topologies.formats import files
from knotless.web.live import LiveFabric
from knotless.web.replay import replay
from knotless.web.serve import serve
from tests.support.fake_fabric import FakeFabric
from tests.support.page_server import CHROMIUM, FLAGS, served

PLAY_S = 4.0
WARM_UP_S = 1.5
WATCH_S = 20.0
DEADLOCKS = 10
"""The number of deadlocks that the page has to show."""
CONFIGURATIONS = {
    "SwiftShader composites": FLAGS,
    "its own choice without GPU": ("--no-sandbox", "--enable-unsafe-swiftshader"),
}
"""With the first, everything that Chromium draws goes through software WebGL, so it is the slower
one; with the second, only WebGL does."""
MEASURE = """seconds => new Promise(done => {
  const of = ["frames", "scriptMs", "drawMs"], gaps = [];
  const read = key => Number(document.documentElement.dataset[key]);
  const before = of.map(read);
  let last = performance.now();
  const end = last + 1000 * seconds;
  const tick = now => {
    gaps.push(now - last);
    last = now;
    if (now < end) requestAnimationFrame(tick);
    else done({ gaps, ...Object.fromEntries(of.map((key, i) => [key, read(key) - before[i]])) });
  };
  requestAnimationFrame(tick);
})"""


def large() -> recording.Recording:
    """Simulate 2 ms of a random fabric at half load, with a frame for each 10 us."""
    fabric = load("random,1000,degree=8,hosts=1,rate=10000,delay=1")
    plan = make_plan(fabric, PlanRequest.from_options(engine="updown"))
    recorder = Recorder(every_us=10)
    scenario = Scenario(plan, "uniform", Load("poisson", 0.5), duration_us=2000.0)
    return recorder.recording(simulate(scenario, None, recorder.run))


def played(page: Page, stored: recording.Recording) -> dict[str, Any]:
    """Play a recording; return the frame rate and what a frame takes.

    ``script_ms`` and ``draw_ms`` are measured in the page, in real time. ``processor_ms`` is
    processor time, which other programs change little; compositing is in ``gpu-process``.
    """
    with served(replay(stored)) as url:
        page.goto(url)
        page.locator("#channels tbody tr").first.wait_for(timeout=120_000)
        page.locator("#play").click()
        page.wait_for_timeout(1000 * WARM_UP_S)
        before = _processor_s()
        result = page.evaluate(MEASURE, PLAY_S)
        if page.locator("#play").inner_text() != "Pause":
            raise RuntimeError("the recording has ended before the measurement")
        used = {kind: after - before.get(kind, 0.0) for kind, after in _processor_s().items()}
    gaps, shown = sorted(result["gaps"]), max(1, result["frames"])
    return {
        "switches": len(stored.fabric["switches"]),
        "channels": len(stored.channels),
        "frames_per_s": round(shown / (sum(gaps) / 1000), 1),
        "frame_ms": round(sum(gaps) / shown, 1),
        "browser_frame_ms_median": round(statistics.median(gaps), 1),
        "browser_frame_ms_p95": round(gaps[int(0.95 * len(gaps))], 1),
        "script_ms": round((result["scriptMs"] - result["drawMs"]) / shown, 1),
        "draw_ms": round(result["drawMs"] / shown, 1),
        "processor_ms": {kind: round(1000 * seconds / shown, 1) for kind, seconds in used.items()},
    }


def _processor_s() -> dict[str, float]:
    """Return the processor time of Chromium's processes by kind; drawing is in ``gpu-process``."""
    seconds: dict[str, float] = defaultdict(float)
    for process in psutil.Process().children(recursive=True):
        words = " ".join(process.cmdline()).split("--type=")
        if "chromium" in words[0]:
            kind = words[1].split()[0] if len(words) > 1 else "browser"
            seconds[kind] += sum(process.cpu_times()[:2])
    return dict(seconds)


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
    state_now = State("t", fake.fabric.name, owner, "ready", started_at, settings=settings)
    state.write(names, state_now)


def _reaction_times(page: Page, names: Names) -> dict[str, Any]:
    fake = FakeFabric(load("ring,4"))
    _up(names, fake, 1.0)
    times_ms = []
    with fake.emulator(names.emulator_socket), served(LiveFabric(names)) as url:
        page.goto(url)
        page.locator("#channels tbody tr").first.wait_for()
        for _ in range(DEADLOCKS):
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
    answers = {"counters": counters, "status": status, "deadlock": {"deadlock": None}}
    changed = time.monotonic()

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        nonlocal changed
        if request["do"] != "counters":
            return answers[request["do"]]
        passed_us = round(1e6 * (time.monotonic() - changed))
        changed += passed_us / 1e6
        counters["now_us"] += passed_us
        for channel in counters["channels"]:
            frames = passed_us // 2000  # of 1,000 bytes, on 10 Mbit/s: a load of two fifths
            channel["priorities"][0]["tx_bytes"] += 1000 * frames
            channel["priorities"][0]["tx_frames"] += frames
            channel["tx_frames"] += frames
        return answers[request["do"]]

    fake.answer = answer  # type: ignore[method-assign]
    # The server is a process of its own, as it is for users; the fake emulator is not in it.
    context = multiprocessing.get_context("spawn")
    urls = context.Queue()
    server = context.Process(target=_serve, args=(names.directory.parent, urls))
    with fake.emulator(names.emulator_socket):
        server.start()
        try:
            page.goto(urls.get(timeout=60.0))
            page.locator("#channels tbody tr").first.wait_for()
            page.wait_for_timeout(2000)
            began, used_s = time.monotonic(), sum(psutil.Process(server.pid).cpu_times()[:4])
            page.wait_for_timeout(1000 * WATCH_S)
            used_s = sum(psutil.Process(server.pid).cpu_times()[:4]) - used_s
            share = used_s / (time.monotonic() - began)
        finally:
            server.terminate()
            server.join()
    return {"server_share_of_a_core": round(share, 4)}


def _serve(folder: Path, urls: Any) -> None:
    """Serve the page of the fabric ``t`` of a folder until terminated."""
    names_module.RUN_DIRECTORY = folder
    setattr(Cables, "cuts", lambda _: [])  # noqa: B010 - a fake has no cables
    source = LiveFabric(Names("t"))
    serve(source, source.feed, "127.0.0.1", 0, urls.put)


def table_of(run: Mapping[str, Any]) -> list[str]:
    """Return the table in docs/web.md."""
    lines = [
        "| Chromium | frames/s | frame ms | script ms | draw ms | CPU ms: page | compositing |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in run["replay"].items():
        used = row["processor_ms"]
        lines.append(
            f"| {name} | {row['frames_per_s']} | {row['frame_ms']} | {row['script_ms']}"
            f" | {row['draw_ms']} | {used['renderer']} | {used['gpu-process']} |"
        )
    live = run["live"]
    return [
        *lines,
        "",
        f"A deadlock is red {live['red_after_ms_median']} ms after its detection (median of"
        f" {DEADLOCKS}; longest {live['red_after_ms_longest']} ms). The server of 16 switches"
        f" takes {live['server_share_of_a_core']:.3f} of a core. {machine_line(run)}",
    ]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@table_option(table_of)
def main(as_json: bool) -> None:
    """Measure the page in Chromium."""
    stored = large()
    begun = about()
    run: dict[str, Any] = {"replay": {}}
    with sync_playwright() as playwright:
        for name, flags in CONFIGURATIONS.items():
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(flags))
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            run["chromium"] = browser.version
            run["replay"][name] = {"flags": list(flags), **played(page, stored)}
            if flags == FLAGS:
                run["live"] = reactions(page)
            browser.close()
    click.echo(as_stored(begun, **run) if as_json else "\n".join(table_of({**begun, **run})))


if __name__ == "__main__":
    run_benchmark(main)
