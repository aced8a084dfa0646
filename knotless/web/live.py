"""A running fabric as the source of a page: one sampler, however many pages are open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from knotless.base.errors import EmulationError, KnotlessError
from knotless.base.files import read_text
from knotless.base.link_problems import deadlock_text
from knotless.emulation import forwarding_loops, report, rest, running_traffic, state
from knotless.emulation.cuts import Cables, Cut
from knotless.emulation.daemon import Daemon
from knotless.emulation.frames import Frames
from knotless.emulation.names import Names
from knotless.emulation.summary import (
    deadlock_advice,
    deadlock_reason,
    fabric_notes,
    fabric_problems,
)
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats import files
from knotless.web.actions import actions_of
from knotless.web.app import Action
from knotless.web.controller import ControllerWatch
from knotless.web.feed import Feed
from knotless.web.picture import Picture

INTERVAL_S = 0.25
DEADLOCK_EVERY_S = 0.1
"""While a page is open, the emulator is asked this often for a deadlock alone: it costs little."""
SHARE = 30
"""Samples take at most one in so many parts of a core: on large fabrics they are rarer."""
BUSY_SHARE = 200
"""The same while the machine does not keep up with the fabric, and each sample slows it down."""
KEEPS_UP = 1.02
"""Largest stretch of a machine that keeps up."""
RETRY_S = 1.0
PARTS_EVERY_S = 5.0
"""Time between two looks whether all parts answer, which costs each of them an answer."""
CUTS_EVERY = 8
"""Samples between two looks at which links are cut."""
_SHOWN = ("stretch", "stretch_now", "valid", "frames_in_network")


@dataclass
class _Sampled:
    """A running fabric that is being sampled; ``identity`` tells it from a later one."""

    identity: tuple[int, float]
    fabric: Fabric
    picture: Picture
    daemon: Daemon | None
    frames: Frames
    knot: str | None = None
    count: int = 0


class LiveFabric:
    """The fabric of ``names``, while it runs and whenever it runs again."""

    def __init__(self, names: Names) -> None:
        self._names = names
        hint = f"printed by: sudo cat {names.token_file}"
        self.feed = Feed("live", f"fabric {names.name}", tuple(self.actions), hint)
        self._state: dict[str, Any] = {}
        self._parts: Mapping[str, Mapping[str, Any]] = {}
        self._processes: list[str] = []
        self._silent: dict[str, str] = {}
        self._reasons: forwarding_loops.Reasons = {}
        """What sends frames on in loops."""
        self._stopped: list[str] = []
        self._links: dict[str, Any] | None = None
        """The last status of the emulator; None if it does not answer."""
        self._sampled: _Sampled | None = None
        self._controller = ControllerWatch(self._rest, self.feed, self._see_controller)

    @cached_property
    def actions(self) -> Mapping[str, Action]:
        """The actions that ``knotless`` commands perform as well."""
        return actions_of(self._names)

    def token(self) -> str | None:
        """Return the token of the fabric's controller."""
        try:
            return read_text(self._names.token_file, EmulationError).strip() or None
        except EmulationError:
            return None

    async def run(self) -> None:
        """Sample until cancelled."""
        await asyncio.gather(
            self._sample_for_ever(), self._controller.run(), self._ask_parts_for_ever()
        )

    async def _ask_parts_for_ever(self) -> None:
        """Tell which parts do not answer, and what sends frames on in loops, as ``status`` does."""
        while True:
            told: tuple[dict[str, str], forwarding_loops.Reasons] = {}, {}
            with suppress(KnotlessError):
                told = await asyncio.to_thread(self._ask_parts)
            if told != (self._silent, self._reasons):
                self._silent, self._reasons = told
                self._show()
            await asyncio.sleep(PARTS_EVERY_S)

    def _ask_parts(self) -> tuple[dict[str, str], forwarding_loops.Reasons]:
        running = state.require_running(self._names)
        parts = report.parts_of(self._names, running)
        silent = report.silent_parts(self._names, running, parts)
        links, sampled = self._links, self._sampled
        if links is None or sampled is None or sampled.daemon is None:
            return silent, {}
        pids = {role: part["pid"] for role, part in parts.items() if part["alive"]}
        asked = {role: pid for role, pid in pids.items() if role not in silent}
        hops = sampled.daemon.loops(links)
        return silent, report.loop_reasons(self._names, links, hops, asked)

    def _rest(self) -> rest.Address:
        return rest.Controller(self._names).address

    def _see_controller(self, status: dict[str, Any]) -> None:
        self._show(controller=status)

    def _show(self, **parts: Any) -> None:
        self._state = {**self._state, **parts}
        self.feed.set_state({**self._state, **self._told()})

    def _told(self) -> dict[str, Any]:
        """Return what ``knotless status`` tells of the same state, with the same functions."""
        fabric = self._state.get("fabric") or {}
        controller = self._state.get("controller") or {}
        answers = controller if controller.get("reachable") else None
        links = self._links
        if links is not None:
            links = forwarding_loops.with_reasons(links, self._reasons)
        knot = None if links is None else links["deadlock"]
        return {
            "problems": fabric_problems(
                phase="ready" if fabric.get("running") else "dead",
                processes=self._processes,
                proof=state.proof_problems(self._names),
                controller=answers,
                emulator=links,
                unread=list(self._unread()),
            ),
            "notes": fabric_notes(
                controller=answers,
                emulator=links,
                cut=[str(Cut.from_json(one)) for one in self._state.get("cut") or ()],
                stopped=self._stopped,
                plain=self._sampled is not None and self._sampled.daemon is None,
            ),
            "reason": None if knot is None else deadlock_reason(answers),
            "advice": []
            if knot is None
            else deadlock_advice(self._names.name, fabric.get("name", ""), answers),
        }

    def _unread(self) -> Iterator[str]:
        """Yield why a part that is alive does not answer, or why the fabric does not run."""
        fabric = self._state.get("fabric") or {}
        if "why" in fabric:
            yield fabric["why"]
            return
        yield from self._silent.values()
        asked = [role for role, part in self._parts.items() if part["alive"]]
        for name in ("controller", "emulator"):
            part = self._state.get(name) or {}
            roles = {role for role in asked if role.startswith(name)}
            if "why" in part and roles - self._silent.keys():
                yield part["why"]

    async def _sample_for_ever(self) -> None:
        while True:
            pause_s = RETRY_S
            try:
                pause_s = await self._sample()
            except KnotlessError as error:
                self._links = None
                self._show(emulator={"reachable": False, "why": str(error)})
            except (KeyError, TypeError, ValueError) as error:
                self._links = None
                why = f"the link emulator's answer is not understood: {error!r}"[:200]
                self._show(emulator={"reachable": False, "why": why})
            await self._wait(pause_s)

    async def _wait(self, pause_s: float) -> None:
        """Wait until the next sample; meanwhile show a deadlock as soon as it begins or ends."""
        deadline = time.monotonic() + pause_s
        while (left_s := deadline - time.monotonic()) > 0:
            await asyncio.sleep(min(left_s, DEADLOCK_EVERY_S))
            sampled = self._sampled
            if left_s > DEADLOCK_EVERY_S and self.feed.clients and sampled and sampled.daemon:
                # What is not understood here, the next sample reports.
                with suppress(EmulationError, KeyError, TypeError):
                    self._see_knot(sampled, await asyncio.to_thread(sampled.daemon.knot))

    async def _sample(self) -> float:
        """Take a sample and return the time until the next one; raises KnotlessError."""
        try:
            running = await asyncio.to_thread(state.require_running, self._names)
        except KnotlessError as error:
            self._show(fabric={"running": False, "why": str(error)}, cut=None, traffic=None)
            raise
        sampled = await self._sampled_as(running)
        self._parts = await asyncio.to_thread(report.parts_of, self._names, running)
        self._processes = report.process_problems(self._names, running, self._parts)
        self._stopped = sorted(state.stopped_switches(self._names))
        missing = [role for role, part in self._parts.items() if not part["alive"]]
        traffic = running_traffic.running(self._names)
        self._show(
            fabric={"running": True, "name": running.fabric, "missing": missing},
            traffic=None if traffic is None else traffic.as_json(),
        )
        if sampled.daemon is None:
            self._show(emulator=None)
            return RETRY_S
        began = time.monotonic()
        status, counters, cuts, cpu_s = await asyncio.to_thread(self._read, sampled)
        answered_s = time.thread_time()
        frame = sampled.frames.next(counters, status["deadlock"])
        if frame is not None:
            self.feed.add_frame(frame)
        self._links = status
        self._see_knot(sampled, status["deadlock"], frame)
        self._show(emulator={"reachable": True, **{key: status[key] for key in _SHOWN}})
        if cuts is not None:
            self._show(cut=cuts)
        cpu_s += time.thread_time() - answered_s
        return max(INTERVAL_S - (time.monotonic() - began), cpu_s * share_of(status))

    async def _sampled_as(self, running: state.State) -> _Sampled:
        """Return what is sampled; begins again if another fabric runs now."""
        identity = (running.owner.pid, running.started_at)
        if self._sampled is None or self._sampled.identity != identity:
            fabric = await asyncio.to_thread(files.read, self._names.fabric_file)
            picture = Picture(fabric)
            emulated = running.settings.get("links", "emulated") == "emulated"
            daemon = Daemon(self._names.emulator_socket, fabric.switch_index) if emulated else None
            frames = Frames(picture.index, picture.hosts_by_mac)
            self._sampled = _Sampled(identity, fabric, picture, daemon, frames)
            self._links = None
            self.feed.set_picture(picture)
        return self._sampled

    def _read(
        self, sampled: _Sampled
    ) -> tuple[dict[str, Any], Mapping[str, Any], list[dict[str, object]] | None, float]:
        """Read the emulator, in a thread; the last value is the processor time that it took."""
        assert sampled.daemon is not None  # noqa: S101 - plain links are not sampled
        began = time.thread_time()
        status = report.link_status(sampled.daemon, sampled.fabric)
        counters = sampled.daemon.counters()
        cuts = None
        if sampled.count % CUTS_EVERY == 0:
            cuts = [cut.as_json() for cut in Cables.of_running(self._names).cuts()]
        sampled.count += 1
        return status, counters, cuts, time.thread_time() - began

    def _see_knot(
        self,
        sampled: _Sampled,
        knot: Mapping[str, Any] | None,
        frame: Mapping[str, Any] | None = None,
    ) -> None:
        """Tell when a deadlock is detected, and when it is gone.

        Pages see it at once: without a new ``frame``, in the last one again.
        """
        cycle = None if knot is None else deadlock_text(knot["cycle"])
        if cycle == sampled.knot:
            return
        sampled.knot = cycle
        if self._links is not None:
            self._links = {**self._links, "deadlock": knot}
            self._show()
        again = None if frame is not None else sampled.frames.again(knot)
        if again is not None:
            self.feed.add_frame(again)
        self.feed.add_event("deadlock" if cycle else "deadlock-over", {"text": cycle or ""})


def share_of(status: Mapping[str, Any]) -> int:
    """Return in how many parts of a core samples may take one, by the emulator's status."""
    stretch: float | None = status["stretch_now"]  # None: virtual time stands still
    keeps_up = stretch is None or stretch <= KEEPS_UP * status["slow_down"]
    return SHARE if keeps_up else BUSY_SHARE


class LiveController:
    """A controller of ours without an emulator, such as one of hardware switches."""

    def __init__(self, address: rest.Address, token: str | None) -> None:
        self._address, self._token = address, token
        hint = (
            "none: this page was started without --token-file, and can change nothing"
            if token is None
            else "the content of the file that this page was given with --token-file"
        )
        title = f"controller {address[0]}:{address[1]}"
        self.feed = Feed("live", title, tuple(self.actions), hint)
        self._watch = ControllerWatch(lambda: address, self.feed, self._see)
        self._fabric_name: str | None = None
        self._reload = asyncio.Event()

    @cached_property
    def actions(self) -> Mapping[str, Action]:
        """Changes of routes; nothing else is ours to change."""

        def request(path: str) -> Action:
            return lambda fields: rest.post(self._address, path, fields, self._token or "")

        return {path: request(f"/{path}") for path in ("drain", "undrain", "change")}

    def token(self) -> str | None:
        """Return the token that this process was given."""
        return self._token

    async def run(self) -> None:
        """Watch until cancelled."""
        await asyncio.gather(self._watch.run(), self._draw_for_ever())

    def _see(self, status: dict[str, Any]) -> None:
        answers = status if status["reachable"] else None
        unread = [] if answers else [status["why"]]
        problems = fabric_problems(phase="ready", controller=answers, emulator=None, unread=unread)
        notes = fabric_notes(controller=answers)
        self.feed.set_state({"controller": status, "problems": problems, "notes": notes})
        if status["reachable"] and status["fabric"] != self._fabric_name:
            self._reload.set()

    async def _draw_for_ever(self) -> None:
        while True:
            await self._reload.wait()
            self._reload.clear()
            try:
                fabric = await asyncio.to_thread(self._watch.fabric)
            except KnotlessError:
                continue
            self._fabric_name = fabric.name
            self.feed.set_picture(Picture(fabric))
