"""The world of one run: a fabric of switches in memory, its controllers, and what happens."""

from __future__ import annotations

import logging
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from knotless.base.flow_control import FlowControl
from knotless.controller import config
from knotless.controller.reconcile import normal
from knotless.controller.updates.state import UpdateState
from knotless.forwarding.openflow.rules import COOKIE, Choose
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats.files import to_text
from knotless.verification.changes.change import EVERYTHING
from tests.seeded import runtime as seeded_runtime
from tests.seeded.controllers import Controller
from tests.seeded.forwarding import Forwarding, group_of, is_foreign, rule_of
from tests.seeded.hub import Draws, Process, SimulatedHub
from tests.seeded.judge import EVERYBODY, Judge, Pair
from tests.seeded.network import LONG_LINE_US, Network
from tests.seeded.parts import parts_of
from tests.seeded.service import ServiceJudge
from tests.seeded.switch import Switch
from tests.support import REPOSITORY

_START_S = 1000.0
_COUNTS_ANEW = re.compile(r"(\S+) counts frames of .* from zero again$")
_MOMENTS = {"send": "message", "write": "write"}
_FRAME_S = (0.02, 0.3)
TOKEN = "0123456789abcdef0123456789abcdef"  # noqa: S105 - of a simulation


@dataclass(frozen=True)
class Setting:
    """What a run has besides its faults."""

    seed: int
    fabric: str = "ring,4"
    controllers: int = 1
    options: str = ""
    """More lines of the configuration."""
    emulator: bool = False
    """Whether links are emulated, and switches are processes of Open vSwitch."""
    judged: bool = True
    """Whether invariants are judged."""
    with_ryu: bool = False
    """Whether controllers are applications of Ryu."""

    @property
    def command(self) -> str:
        """The command that repeats the run."""
        words = ["python -m tests.seeded", f"--seed {self.seed}", f"--fabric {self.fabric}"]
        words += [f"--controllers {self.controllers}"] if self.controllers > 1 else []
        words += [f"--options '{self.options}'"] if self.options else []
        words += ["--emulator"] if self.emulator else []
        words += ["--with-ryu"] if self.with_ryu else []
        return " ".join([*words, *([] if self.judged else ["--no-invariants"])])

    @property
    def spec(self) -> str:
        """The fabric with the delay of its links, or its file."""
        if self.fabric.endswith(".graphml"):
            return str(REPOSITORY / self.fabric)
        return self.fabric if self.emulator else f"{self.fabric},delay={LONG_LINE_US}"


@dataclass(frozen=True)
class Violation:
    """Something that must not be."""

    kind: str
    at_s: float
    author: str
    text: str

    @property
    def is_of_invariant(self) -> bool:
        """Whether it is more than an exception in a thread, or a line of problems."""
        return self.kind not in ("exception", "line")

    def __str__(self) -> str:
        return f"{self.at_s - _START_S:.6f} s, {self.kind} by {self.author}: {self.text}"


@dataclass
class World:
    """Everything outside of the controllers; to be entered as a context."""

    setting: Setting
    violations: list[Violation] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    """What happened, readable."""
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.draws = Draws(self.setting.seed)
        self.hub = SimulatedHub(self.draws, _START_S)
        self.fabric = load(self.setting.spec)
        plan = make_plan(self.fabric, config.parse(self.setting.options))
        self.tags = plan.host_tags()
        """The VLANs of what hosts send, if they tag it; they never change them."""
        self.parts = () if self.tags else parts_of(self.fabric)
        """What reloads may leave of the fabric; all of its cables and switches stay there."""
        self.asked_fabric = self.fabric
        """That of the configuration."""
        self.network = Network(self, self.fabric)
        self.switches = {
            switch.name: Switch(
                self,
                switch.name,
                switch.dpid,
                [*self.fabric.hosts_at[switch.name], *self.fabric.neighbours[switch.name]],
            )
            for switch in self.fabric.switches
        }
        self.nothing = Forwarding((), (), frozenset())
        self._forwardings: dict[tuple[object, ...], Forwarding] = {}
        self.controllers: dict[str, Controller] = {}
        self.cut_off: set[tuple[str, str]] = set()
        """Controllers, and switches that cannot reach them."""
        self.impostors = 0
        """How many switches have said that they are another one."""
        self.silent_until_s = 0.0
        """Until then emulator and Open vSwitch do not answer."""
        self.is_calm = self.is_over = False
        """``is_calm``: no frame stays long. ``is_over``: what is logged now counts no more."""
        self.full_until_s = 0.0
        """Until then no controller can write a file."""
        self.disk: dict[str, str] = {}
        """The files of the controllers, which share them."""
        self.events = 0
        self._concern = ""
        """The kind of the fault that happens now, or from which follows what happens."""
        self._author: Controller | None = None
        """Whose rules switches take."""
        self._hash = blake2b(digest_size=16)
        self._kills: dict[tuple[str, str], tuple[int, float]] = {}
        self._recounted_s: dict[tuple[str, str], float] = {}
        """When a controller has last said that a switch counts from zero again."""
        self.shares_buffer = plan.flow_control is not FlowControl.PFC
        """Whether frames of all priorities wait together."""
        self.judge = Judge(self, shares_buffer=self.shares_buffer)
        self.service = ServiceJudge(self)

    @contextmanager
    def running(self) -> Iterator[World]:
        """Run the controllers meanwhile."""
        with tempfile.TemporaryDirectory() as folder, seeded_runtime.in_place(self):
            self._directory = folder
            self._configure(Path(folder))
            for controller in self.controllers.values():
                self.start(controller)
            for switch in self.switches.values():
                for controller in self.controllers.values():
                    switch.reconnect(controller)
            self._next_frame()
            self.judge.changed("start")
            yield self
            self.is_over = True

    def _configure(self, folder: Path) -> None:
        count = self.setting.controllers
        ports = [8081 + number for number in range(count)]
        for number, port in enumerate(ports):
            name = f"c{number + 1}"
            place = folder / name
            place.mkdir()
            token = place / "token"
            token.write_text(TOKEN + "\n")
            token.chmod(0o600)
            for part in self.parts:
                (place / f"{part.name}.json").write_text(to_text(part))
            lines = [
                f"fabric: '{self.setting.spec}'",
                "state_file: state.json",
                f"rest: {{port: {port}, token_file: token}}",
            ]
            if self.setting.emulator:
                lines += ["emulator: emulator.sock", "open_vswitch: openvswitch"]
            if count > 1:
                addresses = ", ".join(f"'127.0.0.1:{each}'" for each in ports)
                lines.append(f"controllers: [{addresses}]")
            file = place / "knotless.yaml"
            file.write_text("\n".join([*lines, self.setting.options]) + "\n")
            self.controllers[name] = Controller(self, name, file, port)
        for controller in self.controllers.values():
            controller.disk = self.disk

    def start(self, controller: Controller) -> None:
        """Start a controller, and go on until it listens."""
        controller.start()
        for _ in range(1000):
            self.hub.sleep_outside(0.01)
            if controller.listening(ofp_port=True) is not None or not controller.is_running:
                return

    token = TOKEN
    start_s = _START_S
    engines = ("updown", "dor", "auto")
    groups: tuple[dict[str, list[str]], ...] = (
        {},
        {"1": ["h1", "h2"]},
        {"1": ["h1", "h2"], "2": ["h1", "h2", "h3"]},
    )
    """Multicast groups that operators request, by their numbers."""

    def later(self, seconds: float, function: Callable[..., object], *args: object) -> None:
        """Call a function after some time."""
        self.at(self.hub.now_s + seconds - self.start_s, function, *args)

    def at(self, seconds: float, function: Callable[..., object], *args: object) -> None:
        """Call a function at a time after the start."""
        kind = self._concern

        def happen() -> None:
            with self.concerned_by(kind):
                function(*args)

        self.hub.call_at(self.start_s + seconds, self.hub.outside, happen)

    @contextmanager
    def concerned_by(self, kind: str, seconds: float = 0.0) -> Iterator[None]:
        """Have what happens meanwhile, and what comes of it later, begin or end a kind of fault.

        ``seconds``: so long it lasts.
        """
        before, self._concern = self._concern, kind
        if kind:
            self.service.see_fault(kind, seconds)
        try:
            yield
        finally:
            self._concern = before
        if kind:
            self.service.unserved()

    def heal(self) -> None:
        """End what would not end by itself."""
        self.is_calm = True
        self.silent_until_s = self.full_until_s = 0.0
        self._kills.clear()

    def deaf(self) -> set[str]:
        """Return the switches whose pipelines stand still."""
        return {name for name, switch in self.switches.items() if switch.is_deaf}

    # --- what others ask ---------------------------------------------------------------------

    def controller_of(self) -> Controller:
        """Return the controller whose process runs now."""
        for controller in self.controllers.values():
            if controller.process is self.hub.current:
                return controller
        raise AssertionError("no controller runs now")

    @property
    def is_silent(self) -> bool:
        """Whether emulator and Open vSwitch do not answer now."""
        return self.hub.now_s < self.silent_until_s

    def is_cut_off(self, controller: Controller, switch: Switch) -> bool:
        """Return whether a switch cannot reach a controller."""
        return (controller.name, switch.name) in self.cut_off

    def forwarding(
        self, flows: tuple[bytes, ...], groups: tuple[bytes, ...], up: frozenset[int]
    ) -> Forwarding:
        """Return what entries do; the same object for the same entries."""
        watches = any(found.group and found.group.watch for found in map(group_of, groups)) or any(
            isinstance(action, Choose)
            for found in map(rule_of, flows)
            if found.rule is not None
            for action in found.rule.actions
        )
        key = (flows, groups, up if watches else None)
        if key not in self._forwardings:
            self._forwardings[key] = Forwarding(flows, groups, up)
        return self._forwardings[key]

    def dropped_pairs(self) -> set[Pair]:
        """Return the pairs whose frames the record of a change names as dropped."""
        names = [host.name for host in self.fabric.hosts]
        dropped: set[Pair] = set()
        update = self._author_update()
        plan = None if update is None else update.progress.plan
        for step in () if plan is None else plan.change.steps:
            for source, destination in step.dropped:
                if destination in names:
                    dropped.add((source, destination))
                    continue
                dropped |= {(source, f"{EVERYBODY}: {name}") for name in names}
                if destination == EVERYTHING:
                    dropped |= {(source, name) for name in names}
        return dropped

    def _author_update(self) -> UpdateState | None:
        """Return the update whose rules switches take now; its controller may have died."""
        self._author = self.leader() or self._author
        app = None if self._author is None else self._author.last_app
        return None if app is None else app.service.state.update

    @property
    def served_fabric(self) -> Fabric:
        """The fabric whose hosts the author of the rules serves, or is about to."""
        app = None if self._author is None else self._author.last_app
        return self.fabric if app is None else app.service.state.desired.fabric

    def is_served(self, host: str) -> bool:
        """Return whether a host is in the fabric, before the reload that goes on and after it."""
        update = self._author_update()
        staying = None if update is None else update.union.staying
        return host in self.served_fabric.host_index and (staying is None or host in staying)

    def is_wanted(self, switch: str) -> bool:
        """Return whether a switch is in the fabric."""
        return switch in self.served_fabric.hosts_at

    def configure_fabric(self, fabric: Fabric) -> None:
        """Configure the whole fabric, or a part of it."""
        named = self.setting.spec if fabric is self.fabric else f"{fabric.name}.json"
        for controller in self.controllers.values():
            controller.configure("fabric", f"'{named}'")

    def reload_fabric(self, fabric: Fabric) -> None:
        """Configure a fabric, and have all controllers reload."""
        self.asked_fabric = fabric
        self.configure_fabric(fabric)
        for controller in self.controllers.values():
            controller.reload()
        self.service.forget_requests()

    def _put_fabric_back(self) -> None:
        """Have an operator put back what no controller has taken: it would not know what exists."""
        names = {each.name: each for each in (self.fabric, *self.parts)}
        self.configure_fabric(names.get(self.served_fabric.name, self.fabric))

    def _put_right(self, switch: Switch) -> bool:
        """Return whether what others had done to a switch is put right, and note it.

        It holds what it did before, or what is wanted of it, and no update goes on: one may have
        begun with what others have left.
        """
        if not switch.is_touched:
            return False
        update = self._author_update()
        is_settled = update is not None and update.is_there and self.holds_wanted(switch)
        switch.is_touched = not (is_settled or switch.contents == switch.untouched)
        return not switch.is_touched

    def has_no_steps(self) -> bool:
        """Return whether a controller has read all switches, and goes on without proven steps."""
        update = self._author_update()
        return update is not None and update.progress.plan is None

    def put_all_right(self) -> None:
        """Note which switches have been put right without a change of what they hold."""
        for switch in self.switches.values():
            if self._put_right(switch):
                self.judge.changed("others")

    def holds_wanted(self, switch: Switch) -> bool:
        """Return whether a switch holds exactly what is wanted of it, and nothing of others."""
        update = self._author_update()
        if update is None:
            return False
        wanted = update.progress.wanted(switch.name)
        rules = [rule_of(entry) for entry in switch.contents.flows.values()]
        groups = [group_of(entry).group for entry in switch.contents.groups.values()]
        own = {rule.rule for rule in rules if rule.cookie == COOKIE}
        return (
            not any(is_foreign(rule) for rule in rules)
            and own == set(map(normal, wanted.rules))
            and len(groups) == len(wanted.groups)
            and all(group in wanted.groups for group in groups)
        )

    def step(self) -> object:
        """Return what identifies the step whose rules switches take now."""
        update = self._author_update()
        if self._author is None or update is None:
            return None
        return self._author.process.name, update.progress.number

    def doubted_ends(self) -> frozenset[tuple[str, int]]:
        """Return the ports of links that a controller takes for failed, or its rules avoid."""
        update = self._author_update()
        names = set[str]()
        if update is not None:
            names = {*update.union.failures.names, *update.avoided.names}
        links = self.network.links.values()
        return frozenset(
            end
            for link in links
            if names & {link.name, *(switch for switch, _ in link.ends)}
            for end in link.ends
        )

    # --- what happens ------------------------------------------------------------------------

    def record(self, kind: str, name: str, data: bytes) -> None:
        """Add an event to the hash of the run."""
        self.events += 1
        self.counts[kind] += 1
        self._hash.update(f"{self.hub.now_s:.9f} {kind} {name} ".encode() + data)

    def say(self, text: str) -> None:
        """Add a line to the readable log."""
        self.lines.append(f"{self.hub.now_s - _START_S:12.6f} {text}")

    def logged(self, record: logging.LogRecord) -> None:
        """Take a line of a controller's log."""
        if self.is_over:
            return
        text = record.getMessage().replace(self._directory, "")
        self.say(f"{self.hub.current.name}: {text}")
        self.record("log", self.hub.current.name, text.encode())
        if found := _COUNTS_ANEW.match(text):
            self._judge_recounted(self.hub.current.name, self.switches[found[1]])
        if record.exc_info:
            error = record.exc_info[1]
            self.violated("exception", self.hub.current.name, f"{text}: {error!r}")

    def _judge_recounted(self, author: str, switch: Switch) -> None:
        """Judge that counters which are said to begin again have done so since the last time."""
        told_s = self._recounted_s.get((author, switch.name), 0.0)
        if told_s >= switch.counted_since_s and not switch.twins:
            self.violated("counters", author, f"those of {switch.name} have not begun again")
        self._recounted_s[author, switch.name] = self.hub.now_s

    def violated(self, kind: str, author: str, text: str) -> None:
        """Note something that must not be."""
        violation = Violation(kind, self.hub.now_s, author, text)
        self.violations.append(violation)
        self.say(f"VIOLATION {violation}")

    def judge_author(self, author: Controller) -> None:
        """Judge that nobody changes a switch while another controller leads in a later term."""
        leader = self.leader()
        if leader is not None and leader is not author and leader.term > author.term:
            text = f"{leader.name} leads in term {leader.term}, later than {author.term}"
            self.violated("stale", author.process.name, text)

    def changed(self, author: str, switch: Switch) -> None:
        """Judge what switches hold, after one of them has changed."""
        self.say(f"{switch.name} holds {switch.forwarding.own} rules of ours ({author})")
        self._put_right(switch)
        self.judge.changed(author)
        if not self.service.is_served:
            self.service.unserved()

    def about_to(self, what: str, process: Process) -> None:
        """Let a controller die at a chosen message or write."""
        count, after_s = self._kills.pop((what, process.name), (0, 0.0))
        if count > 1:
            self._kills[what, process.name] = count - 1, after_s
        elif count:
            # The fault begins now, and not when it was planned.
            with self.concerned_by(f"kill-at-{_MOMENTS[what]}", after_s):
                self.end(self.controller_of(), after_s)
            self.hub.leave_for_ever()

    def kill_at(self, controller: Controller, what: str, count: int, after_s: float) -> None:
        """Have a controller die at its next message (``send``) or write, or a later one.

        It starts again ``after_s`` later.
        """
        self._kills[what, controller.process.name] = count, after_s

    def end(self, controller: Controller, after_s: float) -> None:
        """Have a controller die, and start again later."""

        def start_again() -> None:
            if not controller.is_running:
                self._put_fabric_back()
                controller.start()

        if controller.is_running:
            controller.kill()
        self.later(after_s, start_again)

    @property
    def digest(self) -> str:
        """The hash of all messages and events so far."""
        return self._hash.hexdigest()

    def _next_frame(self) -> None:
        draws, hosts = self.draws, self.fabric.hosts
        source = hosts[draws.below(len(hosts), "source")].name
        others = [host.name for host in hosts if host.name != source]
        number = draws.below(len(others) + 1, "destination")
        self.network.inject(source, others[number] if number < len(others) else None)
        self.hub.call_at(
            self.hub.now_s + draws.between(*_FRAME_S, "frame"), self.hub.outside, self._next_frame
        )

    def leader(self) -> Controller | None:
        """Return the controller that changes rules now.

        One that hangs may still take itself for active: switches obey that of the latest term.
        """
        leading = [
            controller
            for controller in self.controllers.values()
            if controller.app is not None and controller.app.service.state.leads
        ]
        return max(leading, key=lambda controller: controller.term) if leading else None
