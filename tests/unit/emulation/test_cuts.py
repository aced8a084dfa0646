"""Links that a text names, and the requests to emulator and kernel that cut one."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from knotless.base.errors import EmulationError, FabricError
from knotless.emulation import namespaces, state
from knotless.emulation.cuts import Cables, Cut
from knotless.emulation.names import names_of
from knotless.emulation.wiring import wire
from knotless.topologies import load
from knotless.topologies.fabric import Fabric, Link, Switch
from knotless.topologies.failures import Failures
from knotless.topologies.link_names import link_names
from tests.support import REPOSITORY

RING = load("ring,4")


class Recorder:
    """Stands for the kernel and the emulator; ``calls`` is what they were asked, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.down: set[str] = set()
        self.interfaces = {
            name
            for cable in wire(RING)
            for end in cable.ends
            for name in (end.interface, end.inner)
        }
        self.channels: list[dict[str, Any]] = []

        def batch(lines: list[str], *, namespace: str) -> None:
            self.calls += [f"{namespace}: {line}" for line in lines]

        monkeypatch.setattr(namespaces, "ip_batch", batch)
        monkeypatch.setattr(
            namespaces, "interfaces_up", lambda _namespace: self.interfaces - self.down
        )

    def request(self, do: str, **fields: Any) -> dict[str, Any]:
        if do == "counters":
            return {"channels": self.channels}
        self.calls.append(f"{do} {fields}")
        return {"channels": []} if do == "line" else {}


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(monkeypatch)


def cables_of(fabric: Fabric, recorder: Recorder, *, plain: bool = False) -> Cables:
    cables = Cables(names_of("lab"), wire(fabric), "plain" if plain else "emulated")
    cables._daemon.request = recorder.request  # type: ignore[method-assign]
    return cables


def test_a_line_is_changed_at_both_ends_or_for_what_one_end_sends(recorder: Recorder) -> None:
    cables = cables_of(RING, recorder)
    cable = cables.one("s1-s2")
    cables.set_line(cable, {"loss": 0.01})
    cables.set_line(cable, {"rate_mbps": 5.0}, sender="s2")
    cables.set_line(cables.one("h1"), {}, sender="h1")
    assert recorder.calls == [
        "line {'name': 's1:2-s2:3', 'set': {'loss': 0.01}}",
        "line {'name': 's1:2-s2:3', 'set': {'rate_mbps': 5.0}, 'channel': 's2:3'}",
        "line {'name': 'h1', 'set': {}, 'channel': 'h1'}",
    ]
    with pytest.raises(EmulationError, match="'s3' is not an end of s1:2-s2:3: s1 or s2 is"):
        cables.set_line(cable, {"loss": 0.01}, sender="s3")
    with pytest.raises(EmulationError, match="plain links have no emulator"):
        cables_of(RING, recorder, plain=True).set_line(cable, {})


@pytest.mark.parametrize("text", ["s1-s2", "s2-s1", "s1:2-s2:3", "s2:3-s1:2"])
def test_a_link_is_named_from_either_end_with_or_without_ports(
    text: str, recorder: Recorder
) -> None:
    assert cables_of(RING, recorder).one(text).name == "s1:2-s2:3"


@pytest.mark.parametrize("text", ["h1", "h1-s1", "s1-h1", "h1-s1:1"])
def test_a_hosts_link_is_named_by_its_host(text: str, recorder: Recorder) -> None:
    assert cables_of(RING, recorder).one(text).name == "h1"


@pytest.mark.parametrize("text", ["s1-s3", "s1:2-s2", "s1", "", "s1:2", "s1:1-s2:3"])
def test_an_unknown_link_is_one_line_with_examples(text: str, recorder: Recorder) -> None:
    with pytest.raises(EmulationError, match="links are s1:2-s2:3, ") as raised:
        cables_of(RING, recorder).one(text)
    assert "\n" not in str(raised.value)


def test_parallel_links_are_told_apart_by_their_ports(recorder: Recorder) -> None:
    fabric = Fabric("pair", RING.switches[:2], (), (Link("s1", 2, "s2", 2), Link("s1", 3, "s2", 3)))
    cables = cables_of(fabric, recorder)
    assert [cable.name for cable in cables.find("s1-s2")] == ["s1:2-s2:2", "s1:3-s2:3"]
    with pytest.raises(EmulationError, match="2 links; write one of s1:2-s2:2, s1:3-s2:3"):
        cables.one("s1-s2")
    assert cables.one("s2:3-s1:3").name == "s1:3-s2:3"


def test_names_of_different_links_never_clash() -> None:
    for spec in ("torus,4,4,hosts=2", "clos,4,hosts=2"):
        names = [
            name
            for cable in wire(load(spec))
            for name in link_names((cable.a.owner, cable.a.port), (cable.b.owner, cable.b.port))
        ]
        assert len(names) == len(set(names))


@given(st.integers(0, 10_000))
@pytest.mark.examples(2)
def test_cut_and_drain_read_one_text_alike(seed: int) -> None:
    """Names with dashes: a text names the same links for both, or both refuse it."""
    rng = random.Random(seed)  # noqa: S311
    names = rng.sample(["a", "b", "c", "a-b", "b-c", "a-b-c", "b-a"], 5)
    pairs = [(rng.randrange(i), i) for i in range(1, 5)]
    pairs += [tuple(rng.sample(range(5), 2)) for _ in range(3)]  # type: ignore[misc]
    links = tuple(
        Link(names[a], 2 + 2 * number, names[b], 3 + 2 * number)
        for number, (a, b) in enumerate(pairs)
    )
    switches = tuple(Switch(name, number) for number, name in enumerate(names, 1))
    fabric = Fabric("dashes", switches, (), links)
    cables = Cables(names_of("lab"), wire(fabric), "emulated")
    ambiguous = 0
    for text in {name for x in links for name in link_names((x.a, x.a_port), (x.b, x.b_port))}:
        if text in names:
            continue
        ends = {
            frozenset([x.a, x.b])
            for x in links
            if text in link_names((x.a, x.a_port), (x.b, x.b_port))
        }
        if len(ends) > 1:
            ambiguous += 1
            for error, read in ((FabricError, drained), (EmulationError, cut)):
                with pytest.raises(error, match="names links of different switches; write one of"):
                    read(fabric, cables, text)
        else:
            assert drained(fabric, cables, text) == cut(fabric, cables, text)
    event(f"{min(ambiguous, 1)} ambiguous")


def drained(fabric: Fabric, _cables: Cables, text: str) -> set[str]:
    return set(Failures.from_names(fabric, [text]).links)


def cut(_fabric: Fabric, cables: Cables, text: str) -> set[str]:
    return {cable.name for cable in cables.find(text)}


def test_two_links_of_one_name_are_refused_by_cut_and_drain(recorder: Recorder) -> None:
    fabric = load(str(REPOSITORY / "tests" / "data" / "fabrics" / "dash.json"))
    message = "'a-b-c' names links of different switches; write one of a:2-b-c:2, a-b:2-c:2"
    with pytest.raises(EmulationError, match=message):
        cables_of(fabric, recorder).one("a-b-c")
    with pytest.raises(FabricError, match=message):
        Failures.from_names(fabric, ["a-b-c"])
    assert Failures.from_names(fabric, ["c:2-a-b:2"]).links == ("a-b:2-c:2",)


def test_a_cut_stops_the_frames_before_the_carrier(recorder: Recorder) -> None:
    cables = cables_of(RING, recorder)
    cables.cut(cables.one("s1-s2"))
    assert recorder.calls == [
        "link {'name': 's1:2-s2:3', 'up': False}",
        "kn-lab: link set s1-eth2 mode dormant state dormant",
        "kn-lab: link set s2-eth3 mode dormant state dormant",
    ]


def test_a_host_loses_its_carrier_from_the_emulators_side(recorder: Recorder) -> None:
    cables = cables_of(RING, recorder)
    cables.cut(cables.one("h1"))
    assert recorder.calls == [
        "link {'name': 'h1', 'up': False}",
        "kn-lab-links: link set k8 down",
        "kn-lab: link set s1-eth1 mode dormant state dormant",
    ]


def test_a_silent_cut_leaves_or_restores_the_carrier(recorder: Recorder) -> None:
    cables = cables_of(RING, recorder)
    cables.cut(cables.one("s1-s2"), silent=True, sender="s2")
    assert recorder.calls == [
        "link {'name': 's1:2-s2:3', 'up': True}",
        "link {'name': 's1:2-s2:3', 'up': False, 'channel': 's2:3'}",
        "kn-lab: link set s1-eth2 mode default state up",
        "kn-lab: link set s2-eth3 mode default state up",
    ]


def test_a_plain_link_is_cut_at_its_switches(recorder: Recorder) -> None:
    cables = cables_of(RING, recorder, plain=True)
    cables.cut(cables.one("h1"))
    cables.mend(cables.one("s1-s2"))
    assert recorder.calls == [
        "kn-lab.h1: link set h1-eth0 mode dormant state dormant",
        "kn-lab: link set s1-eth1 down",
        "kn-lab: link set s1-eth2 up",
        "kn-lab: link set s2-eth3 up",
    ]
    with pytest.raises(EmulationError, match="plain links have no emulator"):
        cables.cut(cables.one("s1-s2"), silent=True)


def test_one_direction_is_cut_silently_and_from_an_end(recorder: Recorder) -> None:
    cables = cables_of(RING, recorder)
    with pytest.raises(EmulationError, match="only be cut silently"):
        cables.cut(cables.one("s1-s2"), sender="s1")
    with pytest.raises(EmulationError, match="'s3' is not an end of s1:2-s2:3: s1 or s2 is"):
        cables.cut(cables.one("s1-s2"), silent=True, sender="s3")
    assert recorder.calls == []


def test_cuts_are_what_emulator_and_kernel_say(recorder: Recorder) -> None:
    cables = cables_of(RING, recorder)
    assert cables.cuts() == []
    recorder.down = {"s1-eth2", "s2-eth3"}
    recorder.channels = [
        {"channel": "s1:2", "link": "s1:2-s2:3", "cut": True},
        {"channel": "s2:3", "link": "s1:2-s2:3", "cut": True},
        {"channel": "s2:2", "link": "s2:2-s3:3", "cut": False},
        {"channel": "s3:3", "link": "s2:2-s3:3", "cut": True},
    ]
    cuts = cables.cuts()
    assert cuts == [Cut("s1:2-s2:3", False), Cut("s2:2-s3:3", True, ("s3:3",))]
    assert [str(cut) for cut in cuts] == ["s1:2-s2:3 (no carrier)", "s2:2-s3:3 (silently, s3:3)"]
    assert [Cut.from_json(cut.as_json()) for cut in cuts] == cuts


class Kernel:
    """Stands for ``ip`` while links are cut and mended, and switches stop and start."""

    def __init__(self, patch: pytest.MonkeyPatch, fabric: Fabric, *, plain: bool) -> None:
        self.stopped: set[str] = set()
        self.down: set[tuple[str, str]] = set()
        self.cut: set[str] = set()
        cables = wire(fabric)
        everything = {
            name for one in cables for end in one.ends for name in (end.interface, end.inner)
        }
        self.cables = Cables(names_of("lab"), cables, "plain" if plain else "emulated")
        patch.setattr(self.cables._daemon, "request", lambda _do, **_fields: {"channels": []})

        def up(namespace: str) -> set[str]:
            return {name for name in everything if (namespace, name) not in self.down}

        patch.setattr(namespaces, "ip_batch", self.batch)
        patch.setattr(namespaces, "interfaces_up", up)
        patch.setattr(state, "stopped_switches", lambda _names: frozenset(self.stopped))

    def batch(self, lines: list[str], *, namespace: str) -> None:
        for line in lines:
            _, _, name, *change = line.split()
            change_set = self.down.add if change[-1] in ("down", "dormant") else self.down.discard
            change_set((namespace, name))

    def carrier(self, owner: str) -> set[str]:
        """Return the links of a switch or host whose carrier it sees."""
        lit = set()
        for cable in self.cables._cables:
            parts = {end.owner: self.cables._part(end) for end in cable.ends}
            if owner in parts and all(
                (part.namespace, part.interface) not in self.down
                for part in ([*parts.values()] if not self.cables._emulated else [parts[owner]])
            ):
                lit.add(cable.name)
        return lit


@given(st.data(), st.sampled_from(["ring,4", "mesh,3,2"]), st.booleans())
@pytest.mark.examples(1.5)
def test_whatever_stops_and_is_cut_each_end_has_the_carrier_that_it_should(
    data: st.DataObject, spec: str, plain: bool
) -> None:
    """An end that runs has a carrier if its link is not cut, and its other end not stopped."""
    fabric = load(spec)
    with pytest.MonkeyPatch.context() as patch:
        kernel = Kernel(patch, fabric, plain=plain)
        cables, switches = kernel.cables, [switch.name for switch in fabric.switches]
        for _ in range(data.draw(st.integers(1, 15))):
            if data.draw(st.booleans()):
                cable = data.draw(st.sampled_from(cables._cables))
                if cable.name in kernel.cut:
                    kernel.cut.remove(cable.name)
                    cables.mend(cable)
                else:
                    kernel.cut.add(cable.name)
                    cables.cut(cable)
            else:
                switch = data.draw(st.sampled_from(switches))
                kernel.stopped ^= {switch}
                cables.update_carriers({switch})
            assert {cut.link for cut in cables.cuts()} == kernel.cut
            dead, shown = cables.cut_links()
            expected = {
                one.name
                for one in cables._cables
                if one.name in kernel.cut or {end.owner for end in one.ends} & kernel.stopped
            }
            assert {text.split(" ")[0] for text in shown} == expected
            assert len(dead.down) == 2 * len(expected)
            for owner in [*switches, *(host.name for host in fabric.hosts)]:
                lit = {
                    one.name
                    for one in cables._cables
                    if owner in {end.owner for end in one.ends} and one.name not in expected
                }
                if owner not in kernel.stopped:
                    assert kernel.carrier(owner) == lit
        event(f"{min(len(kernel.stopped), 2)} stopped, {min(len(kernel.cut), 2)} cut")


@pytest.mark.parametrize("fails_at", range(6))
@pytest.mark.parametrize("before", ["whole", "silently", "one direction", "unplugged"])
@pytest.mark.parametrize("action", ["cut", "mend", "silently", "one direction"])
def test_whichever_effect_fails_the_link_is_as_it_was(
    monkeypatch: pytest.MonkeyPatch, action: str, before: str, fails_at: int
) -> None:
    """Each request to emulator and kernel fails once; those that take effects back do not."""
    kernel = Kernel(monkeypatch, RING, plain=False)
    cables, dropping, left = kernel.cables, {"s1:2": False, "s2:3": False}, [100]
    cable = cables.one("s1-s2")

    def step() -> None:
        left[0] -= 1
        if left[0] == -1:
            raise EmulationError("refused")

    def request(do: str, **fields: Any) -> dict[str, Any]:
        if do == "link":
            step()
            for channel in [fields["channel"]] if "channel" in fields else dropping:
                dropping[channel] = not fields["up"]
        cut = [{"channel": c, "link": cable.name, "cut": is_cut} for c, is_cut in dropping.items()]
        return {"channels": cut}

    def batch(lines: list[str], *, namespace: str) -> None:
        for line in lines:  # 'ip -batch' stops at the first line that fails
            step()
            kernel.batch([line], namespace=namespace)

    monkeypatch.setattr(cables._daemon, "request", request)
    monkeypatch.setattr(namespaces, "ip_batch", batch)
    actions: dict[str, Callable[[], object]] = {
        "whole": lambda: None,
        "mend": lambda: cables.mend(cable),
        "cut": lambda: cables.cut(cable),
        "unplugged": lambda: cables.cut(cable),
        "silently": lambda: cables.cut(cable, silent=True),
        "one direction": lambda: cables.cut(cable, silent=True, sender="s2"),
    }
    actions[before]()
    was = (dict(dropping), set(kernel.down), cables.cuts())
    left[0] = fails_at
    with suppress(EmulationError):
        actions[action]()
        assert left[0] >= 0, "it has fewer effects"
        return
    assert (dropping, kernel.down, cables.cuts()) == was


def test_what_cannot_be_taken_back_is_said(recorder: Recorder) -> None:
    cables = cables_of(RING, recorder)

    def request(do: str, **fields: Any) -> dict[str, Any]:
        if do == "link" and fields["up"]:
            raise EmulationError("the link emulator has ended")
        return recorder.request(do, **fields)

    cables._daemon.request = request  # type: ignore[method-assign]
    with pytest.raises(EmulationError, match="ended; what was done before is not taken back: the"):
        cables.mend(cables.one("s1-s2"))
