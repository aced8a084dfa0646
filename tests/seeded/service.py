"""What hosts, operators and readers of ``problems`` are owed, judged while a world runs.

Connected pairs are served within the time of the last fault, lines name what lasts and nothing
else, and in the end the fabric is settled as operators were told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from math import inf
from operator import add
from typing import TYPE_CHECKING, Any

from knotless.controller.election.election import Times
from knotless.controller.process import Controller as ControllerProcess
from tests.seeded.controllers import Controller, Holdings
from tests.seeded.judge import Pair
from tests.seeded.limits import DEMANDS, IN_THE_WAY, SUSPENDS, limit_of, line_of

if TYPE_CHECKING:
    from tests.seeded.world import World

ENDS_S = 15.0
"""Once all is settled, connections whose end nobody has told end within this time."""
LATE_S = 1.0
"""A controller stops so long after the end of its lease, at most."""
MORE = Holdings(threads=2, connections=0, sessions=0, queued=4, bytes=1 << 17)
"""So much more than before the first fault a controller may hold after that."""
_STILL_USED = " is drained but still used"
_END = re.compile(r"\bs\d+:\d+\b")


class ServiceJudge:
    """Judges the service of a world by what its leading controller says and its switches hold."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.due_s = self._world.hub.now_s
        """The time at which what is connected must be served, if no more faults begin or end."""
        self._last = ("start", self._world.hub.now_s)
        """The kind of the last fault that has begun or ended, and when."""
        self.is_served = True
        self._ended_s = self._free_s = self._world.hub.now_s
        """When the last fault has ended, or will; from when on no other one is in the way."""
        self._kinds = set[str]()
        """The kinds of the faults so far."""
        self._lasting: dict[tuple[str, str], float] = {}
        """What a line must name, and since when it lasts; see DEMANDS."""
        self._reported = set[str]()
        self.is_suspended = False
        """Whether the controller waits for ever, as :data:`SUSPENDS` allows it."""
        self.served_after_s: dict[str, float] = {}
        """By kind of the last fault: the longest time until all that is connected was served."""
        self._accepted: dict[str, Any] = {"engine": ..., "multicast": ..., "drained": set()}
        """What requests that were answered with 200 have set; ``...``: it is not known."""
        self._at_first = Holdings(0, 0, 0, 0, 0)
        """The most that each controller has held before the first fault."""

    def see_fault(self, kind: str, seconds: float) -> None:
        """Take note of a fault that begins, and lasts for so long, or that ends."""
        now_s, limit_s = self._world.hub.now_s, limit_of(kind).served_after_s
        self._last = (kind, now_s)
        self.due_s = max(self.due_s, now_s + limit_s)
        self._kinds.add(kind)
        self._ended_s = max(self._ended_s, now_s + seconds)
        if kind in IN_THE_WAY:
            self._free_s = max(self._free_s, now_s + seconds + limit_s)

    def answered(self, path: str, body: dict[str, Any], code: int | None) -> None:
        """Take the answer to an operator; ``code`` None: there was none."""
        engine, parts = body.get("engine"), set(body.get("parts", ()))
        if code is None:
            unknown = ("drained",) if parts else ("engine", "multicast")
            self._accepted |= dict.fromkeys(unknown, ...)
        elif code == HTTPStatus.OK and engine is not None:
            # What is not given is as configured, which a reload may have changed.
            self._accepted |= {"engine": engine, "multicast": body.get("multicast", ...)}
        elif code == HTTPStatus.OK and self._accepted["drained"] is not ...:
            before = self._accepted["drained"]
            self._accepted["drained"] = before | parts if path == "/drain" else before - parts

    def forget_requests(self) -> None:
        """Take note that what operators were told may be lost."""
        self._accepted = dict.fromkeys(self._accepted, ...)

    def _confirm(self) -> None:
        """Have an operator reload again, and confirm and correct what a damaged file did not tell.

        Links that rules avoided when it was damaged may have been drained, or have failed. What is
        drained may be needed in another fabric.
        """
        leader = self._world.leader()
        if leader is None or leader.app is None:
            return
        lines = leader.app.service.status.problems(self._world.hub.now_s)
        asked = self._world.asked_fabric
        is_refused = any(line.startswith("the configuration was not reloaded") for line in lines)
        if is_refused or leader.app.service.state.desired.fabric.name != asked.name:
            if is_refused:  # perhaps an engine was requested that the fabric cannot have
                leader.request("/change", {"engine": "auto"}, self._world.token)
            self._world.reload_fabric(asked)
        if any(line.startswith("the state file is damaged") for line in lines):
            leader.request("/confirm", {}, self._world.token)
        used = [line.partition(_STILL_USED)[0] for line in lines if _STILL_USED in line]
        if used and self._kinds & {"state-damaged", "fabric-reloaded"}:
            leader.request("/undrain", {"parts": used}, self._world.token)

    def _forgotten(self, status: dict[str, Any]) -> Iterator[str]:
        """Yield what operators were told that has been done, and is not so."""
        now = {key: status["request"][key] for key in ("engine", "multicast")}
        now["drained"] = set(status["drained"])
        for key, value in self._accepted.items():
            if value not in (..., now[key]):
                yield f"{key} is {now[key]}, but {value} was accepted"

    def unsettled(self) -> list[str]:
        """Return why the fabric is not settled."""
        self._world.put_all_right()
        leader = self._world.leader()
        if leader is None or leader.app is None:
            return ["no controller leads"]
        service = leader.app.service
        status: dict[str, Any] = service.status.as_json(self._world.hub.now_s)
        lines = [f"problem: {text}" for text in status["problems"] if not _may_stay(text)]
        if not service.state.observed.ready:
            waiting = [s.name for s in service.state.observed.switches.values() if not s.installed]
            lines.append(f"not installed: {', '.join(waiting)}")
        if not service.state.update.is_there:
            lines.append(f"the routes change: {status['routes']}")
        lines += self._forgotten(status)
        if (served := service.state.desired.fabric.name) != self._world.asked_fabric.name:
            lines.append(f"the fabric is {served}, and not {self._world.asked_fabric.name}")
        up = {
            link.name
            for link in self._world.network.links.values()
            if self._world.network.carries(link)
        }
        avoided = sorted(up & set(service.state.update.avoided.links))
        lines += [f"routes avoid {name}, which is up" for name in avoided]
        if service.state.update.progress.in_flight:
            lines.append("older rules are left")
        if self._world.setting.judged:
            lines += [
                f"{a} -> {b} is not delivered" for a, b in sorted(self._world.judge.undelivered())
            ]
        for name, switch in self._world.switches.items():
            wanted = len(service.state.update.progress.wanted(name).rules)
            if switch.forwarding.own != wanted or not self._world.holds_wanted(switch):
                lines.append(f"{name} holds {switch.forwarding.own} of {wanted} rules, or others")
        return lines

    def judge(self) -> None:
        """Judge whether all pairs that are connected are served, if nothing excuses it.

        Excused is the time after a fault has begun or ended that its kind has, and that in which a
        switch has no power, no controller leads, or it waits for a switch.
        """
        self._world.put_all_right()
        self._judge_leases()
        late = self.unserved()
        leader = self._world.leader()
        if not self._kinds:
            held = [each.holdings() for each in self._world.controllers.values()]
            self._at_first = Holdings(*map(max, zip(self._at_first, *held, strict=True)))
        self._judge_lines(leader)
        if self._suspends(leader):
            return
        deaf = self._world.deaf()
        # Whatever happens meanwhile may have the search for deaf switches begin anew.
        due_s = self.due_s + (limit_of("deaf").served_after_s if deaf else 0.0)
        if leader is None or leader.app is None or self._world.hub.now_s < due_s:
            return
        if self._are_many(deaf) or self._lacks_tags(leader.app):
            return
        known = leader.app.service.state.observed.switches.values()
        if not all(switch.connected and switch.installed for switch in known):
            return
        if not all(switch.is_on for switch in self._world.switches.values()):
            return
        if any(link.silent for link in self._world.network.links.values()):
            return
        wanted = [each for each in self._world.switches.items() if self._world.is_wanted(each[0])]
        foreign = {name for name, switch in wanted if switch.holds_foreign}
        lines = leader.app.service.status.problems(self._world.hub.now_s)
        named = {
            name
            for name in self._world.switches
            if any(_names_foreign(line, name) for line in lines)
        }
        for name in sorted(named ^ foreign):
            text = "are not reported" if name in foreign else "are reported, and gone"
            self._world.violated("silent", "others", f"rules of others at {name} {text}")
        if foreign:
            return
        for a, b in sorted(late):
            self._world.violated(
                "late", "the time since the last fault", f"{a} -> {b} is not delivered"
            )

    def _lacks_tags(self, app: ControllerProcess) -> bool:
        """Return whether routes that avoid a failure would need other tags of hosts."""
        return self._world.tags is not None and app.service.state.update.problem is not None

    def _judge_leases(self) -> None:
        """Judge that who leads, of several controllers, has been confirmed by most switches."""
        now_s, switches = self._world.hub.now_s, self._world.served_fabric.switches
        since_s = now_s - Times().lease_s - LATE_S
        for controller in self._world.controllers.values():
            if controller.term == 0 or controller.app is None or controller.hung_until_s > since_s:
                continue
            recent = sum(at_s > since_s for at_s in controller.mastered_s.values())
            if controller.app.service.state.leads and 2 * recent <= len(switches):
                text = f"it leads, and {recent} of {len(switches)} switches have confirmed it"
                self._world.violated("lease", controller.process.name, text)

    def _are_many(self, deaf: set[str]) -> bool:
        """Return whether so many switches are deaf that the routes stay as they are."""
        return 4 * len(deaf) > len(self._world.switches)

    def _judge_lines(self, leader: Controller | None) -> None:
        """Judge the lines of problems: those that appear, and those that must."""
        now_s = self._world.hub.now_s
        lasting = dict(self._to_be_named())
        self._lasting = {
            key: self._lasting.get(key, now_s) for key in lasting if leader is not None
        }
        if leader is None or leader.app is None or not self._world.setting.judged:
            return
        lines = leader.app.service.status.problems(now_s)
        for text in lines:
            line = line_of(text)
            wrong = None
            if line is None:
                wrong = "no line of the table"
            elif not self._kinds & set(line.kinds):
                wrong = "no fault explains it"
            elif now_s > self._ended_s + line.gone_after_s and not self._suspends(leader):
                wrong = f"{line.gone_after_s:g} s after the last fault"
            if wrong is not None and text not in self._reported:
                self._reported.add(text)
                self._world.violated("line", leader.process.name, f"{wrong}: {text}")
        for (kind, name), since_s in self._lasting.items():
            demand = DEMANDS[kind]
            if now_s < max(since_s, self._free_s) + demand.after_s:
                continue
            named = re.compile("|".join(rf"\b{re.escape(part)}\b" for part in lasting[kind, name]))
            if not any(map(named.search, lines)) and f"{kind} {name}" not in self._reported:
                self._reported.add(f"{kind} {name}")
                self._world.violated(
                    "line", leader.process.name, f"missing for {demand.what}: {name}"
                )

    def _suspends(self, leader: Controller | None) -> bool:
        """Return whether a controller waits for what links have lost uncounted, and says so."""
        if (
            leader is None
            or leader.app is None
            or self._world.shares_buffer
            or self._world.setting.emulator
        ):
            return False
        lines = leader.app.service.status.problems(self._world.hub.now_s)
        named = {name for line in lines if SUSPENDS.matches(line) for name in _END.findall(line)}
        return bool(named) and named <= self._world.network.uncertain()

    def _to_be_named(self) -> Iterator[tuple[tuple[str, str], list[str]]]:
        """Yield what a line must name, by kind and name, with the names that are enough."""
        for name, switch in self._world.switches.items():
            if not self._world.is_wanted(name):
                continue
            if not switch.is_on:
                yield ("power", name), [name]
            elif switch.is_deaf and self._can_tell(name):
                # Each one more may have the controller wait whether they become many.
                deaf = ", ".join(sorted(self._world.deaf()))
                yield ("deaf", f"{name} (of {deaf})"), [name]
        for link in (self._world.network.links[e.name] for e in self._world.served_fabric.links):
            dead = [name for name, _ in link.ends if not self._world.switches[name].is_on]
            if not self._world.network.carries(link):
                yield ("cut", link.name), [link.name, *dead]
            elif link.silent:
                yield ("silent", link.name), [link.name]

    def _can_tell(self, name: str) -> bool:
        """Return whether a controller can see that a switch is deaf.

        Some neighbour must send probes to it, and its rules be what they should.
        """
        network, deaf = self._world.network, self._world.deaf()
        probed = any(
            network.carries(link) and not link.silent and not {a, b} <= deaf
            for link in network.links.values()
            for (a, _), (b, _) in [link.ends]
            if name in (a, b)
        )
        return probed and not (self._world.is_silent or self._world.switches[name].is_touched)

    def unserved(self) -> set[Pair]:
        """Return the pairs that are connected and not served; note when that ends."""
        if not self._world.setting.judged:
            return set()
        connected = self._world.network.connected(self._world.served_fabric)
        late = self._world.judge.undelivered() & connected
        kind, since_s = self._last
        if not late and not self.is_served:
            after_s = self._world.hub.now_s - since_s
            self.served_after_s[kind] = max(after_s, self.served_after_s.get(kind, 0.0))
        self.is_served = not late
        return late

    def settle(self, limit_s: float) -> float:
        """Let the world be calm until the fabric is settled; return how long that took."""
        self._world.is_calm = True
        began_s = self._world.hub.now_s
        self._confirm()
        while unsettled := self.unsettled():
            if self._world.hub.now_s - began_s > limit_s:
                self.is_suspended = self._suspends(self._world.leader())
                for line in () if self.is_suspended else unsettled:
                    self._world.violated("unsettled", f"{limit_s:g} s of calm", line)
                break
            self._world.hub.sleep_outside(0.5)
            self._judge_lines(self._world.leader())
            self._confirm()
        settled_s = self._world.hub.now_s - began_s
        if not self._world.violations and not self.is_suspended:
            self._world.hub.sleep_outside(ENDS_S)
            self._judge_holdings()
        return settled_s

    def _judge_holdings(self) -> None:
        """Judge that controllers hold no more than before the first fault, but for a constant."""
        for controller in self._world.controllers.values():
            now = controller.holdings()
            limits = map(add, self._at_first, MORE)
            for what, count, limit in zip(Holdings._fields, now, limits, strict=True):
                if count > limit:
                    text = f"{count} {what} are left, and at most {limit} may be"
                    self._world.violated("leak", controller.process.name, text)


def _may_stay(text: str) -> bool:
    """Return whether a line of problems says what is as it was configured."""
    return (line := line_of(text)) is not None and line.gone_after_s == inf


def _names_foreign(line: str, name: str) -> bool:
    return line.startswith(f"{name} (") and "rules that are not Knotless's" in line
