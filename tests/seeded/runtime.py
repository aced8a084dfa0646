"""Puts a world in place of what a controller depends on, and back.

Functions of :mod:`knotless.controller.runtime` and the hub are replaced, and in Ryu what is one for
a process: its applications, its random numbers, and its listener. Eventlet itself is not changed:
it gets the hub of the world as well.
"""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import greenlet
from ryu import cfg
from ryu.base import app_manager
from ryu.controller import controller as ryu_controller

from knotless.base.errors import KnotlessError
from knotless.base.memory import collector_paused
from knotless.controller import composition, runtime
from knotless.controller.updates.state import UpdateState
from tests.seeded.ryu_hub import ryu_runs
from tests.seeded.streams import ListeningSocket

if TYPE_CHECKING:
    from tests.seeded.controllers import Controller
    from tests.seeded.world import World

_THREAD_S = (0.001, 0.02)
"""How long work in a thread takes."""
_ANSWER_S = (0.0001, 0.005)
_CHECK_S = 0.5


class Bricks(MutableMapping[str, Any]):
    """Ryu's applications by name, of the process that asks."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def _here(self) -> dict[str, Any]:
        return self._world.controller_of().bricks

    def __getitem__(self, name: str) -> Any:
        return self._here[name]

    def __setitem__(self, name: str, brick: Any) -> None:
        self._here[name] = brick

    def __delitem__(self, name: str) -> None:
        del self._here[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._here)

    def __len__(self) -> int:
        return len(self._here)


class SimulatedRuntime:
    """The functions of the runtime, each for the controller that calls it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def _thread(self) -> int:
        return self._world.hub.name_of(greenlet.getcurrent())

    def now_s(self) -> float:
        return self._world.hub.now_s

    def unix_time_s(self) -> float:
        return 1.6e9 + self._world.hub.now_s

    def in_thread(self, function: Callable[..., Any], *args: object) -> Any:
        low, high = _THREAD_S
        seconds = self._world.draws.between(low, high, "in_thread", self._thread())
        try:
            return function(*args)
        finally:
            runtime.sleep(seconds)

    def random_bytes(self, count: int) -> bytes:
        draws, thread = self._world.draws, self._thread()
        return bytes(draws.below(256, "random", thread) for _ in range(count))

    def listen(self, address: tuple[str, int], _backlog: int) -> ListeningSocket:
        listening = ListeningSocket()
        self._world.controller_of().listeners[address[1]] = listening
        return listening

    def ask_line(self, path: Path, request: bytes, timeout_s: float, _limit: int) -> bytes:
        """Ask the emulator, which answers by what it sees at one moment."""
        world = self._world
        low, high = _ANSWER_S
        runtime.sleep(world.draws.between(low, high, "ask", self._thread()))
        if world.is_silent:
            runtime.sleep(timeout_s)
            raise TimeoutError(f"{path}: no answer")
        answer = world.network.emulated(json.loads(request)["do"])
        runtime.sleep(world.draws.between(low, high, "answer", self._thread()))
        return json.dumps(answer).encode() + b"\n"

    def control_sockets(self, directory: Path, _pattern: str) -> list[Path]:
        return [directory / "ovs-vswitchd.1.ctl"]

    def command_open_vswitch(self, _path: Path, commands: Iterable[str]) -> int | None:
        """Perform commands: a check of cached entries takes up to half a second."""
        low, high = _ANSWER_S
        for command in commands:
            high = _CHECK_S if command.endswith("wait") else high
            while self._world.is_silent:
                runtime.sleep(0.1)
            runtime.sleep(self._world.draws.between(low, high, "command", self._thread()))
        return 0

    def refuse_taken_port(self, *_: object) -> None:
        """Every process has its own ports."""

    def allow_open_files(self) -> None:
        """There are none."""

    def is_kept(self, path: Path) -> bool:
        return path.name in self._world.controller_of().disk

    def read_kept(
        self, path: Path, _error: type[KnotlessError] = KnotlessError, _limit: int = 0
    ) -> str | None:
        return self._world.controller_of().disk.get(path.name)

    def keep(
        self,
        path: Path,
        text: str,
        error: type[KnotlessError] = KnotlessError,
        aside: Path | None = None,
    ) -> None:
        controller = self._writing(path, error)
        if aside is not None and path.name in controller.disk:
            controller.disk[aside.name] = controller.disk[path.name]
        controller.disk[path.name] = text
        self._world.record("disk", path.name, text.encode())

    def remove_kept(self, path: Path, error: type[KnotlessError] = KnotlessError) -> None:
        controller = self._writing(path, error)
        controller.disk.pop(path.name, None)
        self._world.record("disk", path.name, b"")

    def _writing(self, path: Path, error: type[KnotlessError]) -> Controller:
        """Return the controller that is about to write; raises ``error`` if it cannot."""
        controller = self._world.controller_of()
        self._world.about_to("write", controller.process)
        if self._world.hub.now_s < self._world.full_until_s:
            raise error(f"{path.name}: cannot be written: No space left on device")
        return controller

    def environment(self) -> dict[str, str]:
        return {"KNOTLESS_CONFIG": str(self._world.controller_of().config)}

    def exit_process(self, status: int) -> None:
        self._world.record("exit", str(status), b"")
        self._world.controller_of().kill()
        self._world.hub.leave_for_ever()

    def keep_heap(self) -> None:
        """One heap serves all runs."""

    def collect_garbage(self, *, enabled: bool) -> None:
        """One heap serves all runs."""

    def handle_signal(self, number: int, handler: Callable[..., None]) -> None:
        self._world.controller_of().signal_handlers[number] = handler

    def signals(self, number: int) -> Iterator[None]:
        event = runtime.Event()
        self._world.controller_of().signal_handlers[number] = lambda *_: event.set()
        while True:
            event.wait()
            event.clear()
            yield


class SimulatedWorker:
    """The background process: what it is given is computed at once, and takes time."""

    def call(self, packing: Any, function: Callable[..., object], *args: object) -> bytes:
        packed: bytes = packing.pack(function(*packing.unpack(packing.pack(args))))
        return packed


class SeededRandom:
    """What Ryu draws."""

    def __init__(self, world: World) -> None:
        self._world = world

    def randint(self, low: int, high: int) -> int:
        share = self._world.draws.share("ryu", self._world.hub.current.name)
        return low + int(share * (high - low))


class _Log(logging.Handler):
    """Gives what is logged to the world."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.INFO)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        self._world.logged(record)


def _judged(world: World) -> Callable[[UpdateState], None]:
    """Return what records that older frames have left, and has that judged."""
    quiescent = UpdateState.quiescent

    def record(update: UpdateState) -> None:
        if update.pauses_between_switches:
            world.judge.quiescent(world.hub.current.name)
        quiescent(update)

    return record


@contextmanager
def in_place(world: World) -> Iterator[None]:
    """Have controllers run in a world meanwhile."""
    simulated = SimulatedRuntime(world)
    names = [name for name in vars(SimulatedRuntime) if not name.startswith("_")]
    cfg.CONF([], project="ryu", default_config_files=[])
    handler = _Log(world)
    loggers = [logging.getLogger(name) for name in ("knotless", "ryu", "KnotlessController")]
    # What earlier tests have left is freed first: green threads that are freed during a run would
    # clean up in the middle of it, at a time that no seed decides.
    gc.collect()
    with collector_paused(), ExitStack() as stack:
        for name in names:
            stack.enter_context(patch.object(runtime, name, getattr(simulated, name)))
        stack.enter_context(patch.object(composition, "Worker", SimulatedWorker))
        stack.enter_context(patch.object(UpdateState, "quiescent", _judged(world)))
        stack.enter_context(patch.object(app_manager, "SERVICE_BRICKS", Bricks(world)))
        stack.enter_context(patch.object(ryu_controller, "random", SeededRandom(world)))
        for name in ("StreamServer", "datapath_connection_factory"):
            stack.enter_context(patch.object(ryu_controller, name, getattr(ryu_controller, name)))
        for logger in loggers:
            stack.enter_context(patch.object(logger, "propagate", new=False))
            stack.enter_context(patch.object(logger, "handlers", [handler]))
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.INFO)
        stack.enter_context(ryu_runs(world.hub))
        world.hub.use()
        try:
            yield
        finally:
            world.hub.end()
