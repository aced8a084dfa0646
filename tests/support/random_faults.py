"""What ``knotless status`` says while parts of a fabric fail at random, and how it recovers.

A fabric with two controllers carries pings. Under a seed, controllers and Open vSwitch are killed,
switches stop and restart, links are cut, rules are deleted and multicast groups are added and
removed, and each is mended by the command that the status names. A fault counts as reported if
``knotless status``, asked again and again from 5 s after it until it is mended, always has exit
status 1 and lines that name it. Recovered is when the status is 0 and ``knotless check --live``,
which reads all switches, is too. Then, and while a fault lasts, the two must agree with what
arrives of frames between all hosts.
"""

from __future__ import annotations

import os
import random
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import yaml

from knotless.base.errors import EmulationError, KnotlessError
from knotless.emulation import rest, state
from knotless.emulation.cuts import Cables
from knotless.emulation.daemon import Daemon
from knotless.emulation.names import Names, names_of, role_of
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from tests.support.running_fabric import Answer, Commands, Deliveries, pings

CONTROLLERS = 2
REPORTED_S = 5.0
"""Within this time the status must name a fault."""
HELD_S = (6.0, 9.0)
"""A fault that has to be mended lasts this long, at random."""
GIVEN_UP_S = 120.0
GROUPS = (1, 2, 3)
LOOK_S, MARKED_S = 0.1, 3.0


@dataclass(frozen=True)
class Fault:
    """A fault that has just begun.

    Attributes
    ----------
    what : what was done to which part.
    lines : expressions, each of which a line of the status must match while it lasts.
    mend : ends it; None: the controller does so by itself.
    is_served : whether all hosts have to reach each other again while it lasts.

    """

    what: str
    lines: tuple[str, ...]
    mend: Callable[[], None] | None = None
    is_served: bool = False


@dataclass
class Row:
    """The figures of one kind of fault; times are in seconds, the longest of all its faults."""

    limit_s: float
    count: int = 0
    reported_s: float | None = None
    served_s: float | None = None
    recovered_s: float | None = None
    late: int = 0
    silent: int = 0
    disagreements: int = 0
    marked: int = 0
    """After how many only a mark was left: what was measured since the last reset is not valid."""

    def longest(self, key: str, seconds: float) -> None:
        """Keep a time if it is longer than those before."""
        before = getattr(self, key)
        setattr(self, key, round(seconds if before is None else max(before, seconds), 2))


LIMITS_S: Mapping[str, float] = {
    "link cut": 10.0,
    "link of a host cut": 10.0,
    "link loses all frames": 10.0,
    "rules deleted": 10.0,
    "groups reloaded": 10.0,
    "switch stopped": 15.0,
    "switch restarted": 15.0,
    "active controller killed": 15.0,
    "standby controller killed": 15.0,
    "all controllers killed, link cut": 15.0,
    "Open vSwitch killed": 30.0,
}
"""Kind -> longest time until all is well: after it, and after it was mended."""


@dataclass
class Series:
    """Random faults of a running fabric, one after the other."""

    fabric: Fabric
    names: Names
    deliveries: Deliveries
    rng: random.Random
    rows: dict[str, Row] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    agreements: int = 0
    groups: dict[int, list[str]] = field(default_factory=dict)
    _step: int = 0
    _kind: str = ""
    _what: str = ""

    def __post_init__(self) -> None:
        self.commands = Commands(self.names)
        self._kinds: dict[str, Callable[[], Fault]] = {
            "link cut": self._cut,
            "link of a host cut": self._cut_host,
            "link loses all frames": self._silent,
            "rules deleted": self._delete_rules,
            "groups reloaded": self._reload,
            "switch stopped": self._stop,
            "switch restarted": self._restart,
            "active controller killed": lambda: self._kill_controllers([self._active()]),
            "standby controller killed": lambda: self._kill_controllers([1 - self._active()]),
            "all controllers killed, link cut": self._kill_all_and_cut,
            "Open vSwitch killed": self._kill_open_vswitch,
        }
        self.rows = {kind: Row(LIMITS_S[kind]) for kind in self._kinds}
        self._order: list[str] = []

    def step(self) -> None:
        """Let something fail, watch and mend it, and compare what commands say with frames.

        Kinds come in a random order, each as often as the others.
        """
        if not self._order:
            self._order = self.rng.sample([*self._kinds], len(self._kinds))
        self._step, self._kind = self._step + 1, self._order.pop()
        row, began_s = self.rows[self._kind], time.monotonic()
        row.count += 1
        fault = self._kinds[self._kind]()
        self._what = fault.what
        if fault.mend is not None:
            self._watch(fault, began_s)
            self._agree(is_fault=True)
            began_s = time.monotonic()
            fault.mend()
        seconds = self._recover(fault, began_s, mended=fault.mend is not None)
        row.longest("recovered_s", seconds)
        if seconds > row.limit_s:
            row.late += 1
            self._violated(f"well after {seconds:.1f} s")
        self._agree(is_fault=False)

    def _violated(self, text: str) -> None:
        self.violations.append(f"step {self._step}, {self._kind}, {self._what}: {text}")

    # --- what is watched ---------------------------------------------------------------------

    def _watch(self, fault: Fault, began_s: float) -> None:
        """Ask for the status while a fault lasts, and until all is served if it should be."""
        row = self.rows[self._kind]
        until_s = began_s + self.rng.uniform(*HELD_S)
        reported_s, is_silent = None, False
        served_s = None if fault.is_served else 0.0
        while time.monotonic() < until_s or served_s is None:
            answer = self.commands.status()
            after_s = answer.asked_s - began_s
            is_named = answer.exit_status == 1 and _names_all(answer, fault.lines)
            if is_named and reported_s is None:
                row.longest("reported_s", reported_s := time.monotonic() - began_s)
            if after_s > REPORTED_S and not (is_named or is_silent):
                is_silent, row.silent = True, row.silent + 1
                self._violated(f"not named after {after_s:.1f} s: {answer.text}")
            if served_s is None:
                checked = self.commands.check()
                if checked.exit_status == 0:
                    served_s = checked.asked_s - began_s
                    row.longest("served_s", served_s)
                    if served_s > row.limit_s:
                        row.late += 1
                        self._violated(f"served after {served_s:.1f} s")
                elif checked.asked_s > began_s + GIVEN_UP_S:
                    raise RuntimeError(f"{self._what}: not served: {checked.text}")
            time.sleep(LOOK_S)

    def _recover(self, fault: Fault, began_s: float, *, mended: bool) -> float:
        """Wait until all is well; return the seconds from the beginning.

        What differs from it must be reported: the status is asked before and after the check. What
        nobody mends can go before it is reported, which may come later, so that is waited for.
        """
        row, is_silent = self.rows[self._kind], False
        marked_s: float | None = None
        well_s: float | None = None
        quiet_s: float | None = None
        while True:
            answer = self.commands.status()
            checked = self.commands.check()
            is_right = checked.exit_status == 0 and self._is_settled()
            if answer.exit_status == 0 and is_right:
                quiet_s = answer.asked_s if quiet_s is None else quiet_s
                if mended or answer.asked_s - began_s > REPORTED_S:
                    return (quiet_s if well_s is None else well_s) - began_s
                time.sleep(LOOK_S)
                continue
            quiet_s = None
            if not (is_right and _is_marked(answer)):
                marked_s = None
            elif marked_s is None:
                marked_s = answer.asked_s
            elif answer.asked_s > marked_s + MARKED_S:
                # It does not go by itself: counters begin again.
                row.marked, well_s = row.marked + 1, marked_s
                Daemon(self.names.emulator_socket, self.fabric.switch_index).reset()
            again = self.commands.status()
            if answer.exit_status and not mended and _names_all(answer, fault.lines):
                row.longest("reported_s", time.monotonic() - began_s)
                mended = True  # once is enough
            says_well = answer.exit_status == again.exit_status == 0
            is_late = answer.asked_s - began_s > REPORTED_S
            if says_well and is_late and checked.exit_status and not is_silent:
                is_silent, row.silent = True, row.silent + 1
                self._violated(f"status says nothing, but check: {checked.text}")
            if again.asked_s - began_s > GIVEN_UP_S:
                raise RuntimeError(f"{self._what}: not well again: {answer.text} {checked.text}")
            time.sleep(LOOK_S)

    def _agree(self, *, is_fault: bool) -> None:
        """Compare what the status, the check and frames between all hosts say."""
        for _ in range(3):
            before = self.commands.check()
            lost = self.deliveries.lost(self.groups)
            after, shown = self.commands.check(), self.commands.status()
            if before.text == after.text:
                break  # nothing has changed meanwhile
        self.agreements += 1
        missing = None if after.value is None else _undelivered(after.value)
        agree = bool(lost) if missing is None else len(lost) == missing
        if not agree or (shown.exit_status == 1) != is_fault:
            self.rows[self._kind].disagreements += 1
            self._violated(
                f"check says {missing} of frames are undelivered, {len(lost)} have not arrived"
                f" ({'; '.join(lost[:3])}), status: {shown.text} {after.text[-1500:]}"
            )

    # --- what fails --------------------------------------------------------------------------

    def _cut(self) -> Fault:
        link = self.rng.choice(self.fabric.links).name
        return self._without(link, (rf"problem: .*link {re.escape(link)} is down",), served=True)

    def _cut_host(self) -> Fault:
        host = self.rng.choice(self.fabric.hosts).name
        return self._without(host, (rf"problem: .*link of host {host} is down",), served=False)

    def _silent(self) -> Fault:
        link = self.rng.choice(self.fabric.links)
        line = rf"problem: .*link {re.escape(link.name)} loses all frames"
        sender = self.rng.choice([None, link.a, link.b])
        return self._without(link.name, (line,), served=True, silent=True, sender=sender)

    def _without(self, link: str, lines: tuple[str, ...], *, served: bool, **how: Any) -> Fault:
        cables = Cables.of_running(self.names)
        cable = cables.one(link)
        cables.cut(cable, **how)
        return Fault(link, lines, lambda: cables.mend(cable), served)

    def _delete_rules(self) -> Fault:
        switch = self.rng.choice(self.fabric.switches).name
        match = self.rng.choice(["", *(f"table={table}" for table in range(4))])
        self._ofctl(switch, "del-flows", *([match] if match else []))
        return Fault(f"{switch} {match or 'all tables'}", (rf"problem: .*\b{switch}\b",))

    def _ofctl(self, switch: str, command: str, *words: str) -> None:
        where = f"unix:{self.names.ovs_directory / switch}.mgmt"
        subprocess.run(
            ["ovs-ofctl", "-O", "OpenFlow13", command, where, *words], check=True, timeout=60
        )

    def _reload(self) -> Fault:
        """Add a group with random members, or remove one that there is, in the configuration."""
        number = self.rng.choice(GROUPS)
        if number in self.groups:
            del self.groups[number]
        else:
            hosts = [host.name for host in self.fabric.hosts]
            self.groups[number] = sorted(self.rng.sample(hosts, self.rng.randint(2, 6)))
        file = self.names.controller_file
        config = yaml.safe_load(file.read_text(encoding="utf-8"))
        file.write_text(yaml.safe_dump({**config, "multicast": self.groups}), encoding="utf-8")
        token = self.names.token_file.read_text(encoding="utf-8").strip()
        active = self._active()
        for controller in (active, 1 - active):
            rest.post((rest.ADDRESS, self._ports()[controller].rest), "/reload", {}, token)
        return Fault(f"groups {sorted(self.groups)}", ())

    def _is_settled(self) -> bool:
        """Tell whether routes avoid nothing, and groups are those of the configuration."""
        try:
            answer = rest.status_of(self._ports())
        except EmulationError:
            return False
        routes, declared = answer["routes"], answer["request"]["multicast"]
        is_quiet = not (routes["failed"] or routes["changing"] or routes["older_rules"])
        return (
            is_quiet and {int(n): sorted(members) for n, members in declared.items()} == self.groups
        )

    def _stop(self) -> Fault:
        switch = self.rng.choice(self.fabric.switches).name
        self.commands.run("switch", "stop", switch)
        return Fault(
            switch,
            (rf"problem: .*\b{switch}\b",),
            lambda: self.commands.run("switch", "start", switch),
        )

    def _restart(self) -> Fault:
        switch = self.rng.choice(self.fabric.switches).name
        self.commands.run("switch", "restart", switch)
        return Fault(switch, (rf"problem: .*\b{switch}\b",))

    def _kill_controllers(self, numbers: Sequence[int]) -> Fault:
        roles = [role_of("controller", number) for number in numbers]
        for role in roles:
            self._kill(role)
        return Fault(
            " and ".join(roles),
            tuple(rf"problem: {role} has died" for role in roles),
            lambda: self.commands.run("controller", "restart"),
            is_served=True,
        )

    def _kill_all_and_cut(self) -> Fault:
        """Nobody repairs the routes: frames to the link are lost, as the check must say."""
        dead = self._kill_controllers(range(CONTROLLERS))
        link = self.rng.choice(self.fabric.links).name
        cut = self._without(link, (rf"cut: .*{re.escape(link)}",), served=False)

        def mend() -> None:
            assert cut.mend is not None and dead.mend is not None  # noqa: PT018
            cut.mend()
            dead.mend()

        return Fault(link, dead.lines + cut.lines, mend)

    def _kill_open_vswitch(self) -> Fault:
        self._kill("ovs-vswitchd")
        return Fault(
            "ovs-vswitchd",
            ("problem: ovs-vswitchd has died",),
            lambda: self.commands.run("switch", "restart", "--all"),
        )

    def _kill(self, role: str) -> None:
        os.kill(state.require_running(self.names).processes[role].pid, signal.SIGKILL)

    def _ports(self) -> list[rest.Ports]:
        return rest.ports_of(state.require_running(self.names).settings)

    def _active(self) -> int:
        """Return the number of the active controller."""
        roles = [rest.status(ports.rest)["role"]["state"] for ports in self._ports()]
        return roles.index("active")


def _names_all(answer: Answer, lines: Sequence[str]) -> bool:
    return all(re.search(line, answer.text) for line in lines)


def _is_marked(answer: Answer) -> bool:
    """Tell whether all problems are those of the emulator: why a run is not valid."""
    problems = re.findall(r"problem: (.*)", answer.text)
    return bool(problems) and all(line.startswith("link emulator: ") for line in problems)


def _undelivered(verdict: Mapping[str, Any]) -> int:
    """Return the pairs that a verdict says are not served, also of groups."""
    unicasts = int(verdict["undelivered"]) + int(verdict["unreachable"])
    return unicasts + int(verdict["multicasts_undelivered"])


def measure(spec: str, seed: int, steps: int) -> dict[str, Any]:
    """Run a fabric with so many random faults; return how many there were, and what was wrong."""
    fabric, names = load(spec), names_of(f"fault-{secrets.token_hex(2)}")
    commands = Commands(names)
    with ExitStack() as ends:
        ends.callback(lambda: commands.run("down"))
        commands.run("up", spec, "--controllers", str(CONTROLLERS), "--rest-port", "0")
        hosts = len(fabric.hosts)
        for ping in pings(
            fabric, names, [(n, (n + hosts // 3) % hosts) for n in range(0, hosts, 4)]
        ):
            ends.callback(ping.wait)
            ends.callback(ping.kill)
        deliveries = ends.enter_context(Deliveries(fabric, names))
        rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        series = Series(fabric, names, deliveries, rng)
        done = 0
        while done < steps:
            done += 1
            try:
                series.step()
            except (RuntimeError, KnotlessError) as error:
                series.violations.append(f"the series ends at fault {done}: {error}")
                break
    return {
        "faults": done,
        "comparisons": series.agreements,
        "rows": [{"kind": kind, **vars(row)} for kind, row in series.rows.items()],
        "violations": series.violations,
    }
