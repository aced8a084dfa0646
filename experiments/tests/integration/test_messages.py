"""Messages between processes on hosts, over a veth pair and over an emulated fabric with PAUSE."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from knotless.base.package import NATIVE
from knotless.emulation import namespaces, state
from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless.topologies import load
from tests.support import REPOSITORY
from tests.support.waiting import HANG_S

PORT = 9
LIMIT_S = 60
OWN = "02:00:00:00:00:01"
OPEN = "b.Barrier('e0', 1, "

SEND = """
import json, sys
from knotless._core.endpoint import Endpoint
interface, to, count, bytes_, acknowledged = sys.argv[1:]
here = Endpoint(interface, 8, give_up_s=30)
for number in range(int(count)):
    data = number.to_bytes(4, "big") * (int(bytes_) // 4)
    here.send((to, 9), data, acknowledged=acknowledged == "yes")
assert here.flush(40)
failed = []
while (done := here.completion()) is not None:
    failed += [done[1]] * (done[1] is not None)
print(json.dumps({"failed": failed, "held": here.held_back_by_emulator, **here.counters()}))
"""

RECEIVE = """
import json, sys
from knotless._core.endpoint import Endpoint
interface, count, group = sys.argv[1:]
here = Endpoint(interface, 9, receive_buffers=8000)
if group:
    here.join(group)
print("ready", flush=True)
numbers = {}
for _ in range(int(count)):
    message = here.receive(20.0)
    if message is None:
        break
    assert message.data == message.data[:4] * (len(message.data) // 4)
    sender = numbers.setdefault(message.from_address[0], [])
    sender.append(int.from_bytes(message.data[:4], "big"))
here.flush(5)
print(json.dumps({"numbers": numbers, "counters": here.counters()}))
"""

SEND_ON = """
import sys
from knotless._core.endpoint import Endpoint
interface, to = sys.argv[1:]
here = Endpoint(interface, 8)
for count, report in ((100, "sending"), (1000, "sent")):
    for _ in range(count):
        here.send((to, 9), bytes(1400))
        assert here.flush(20), "it waits for credit"
    print(report, flush=True)
    sys.stdin.readline()
"""


KEEP = """
import sys
from knotless._core.endpoint import Endpoint
here = Endpoint(sys.argv[1], 1)
here.register(4, 32)
here.write_area(4, 0, b"0123456789")
print("ready", flush=True)
message = here.outcome(here.irecv(("02:00:00:00:00:01", 1), 7), 20.0)
assert message.data == b"finished"
assert here.area(4)[:10] == b"ab23Y5Y789", here.area(4)
here.flush()
"""

USE = """
import sys
from knotless._core.endpoint import Endpoint, AccessPattern, Twin
here, there = Endpoint(sys.argv[1], 1), ("02:00:00:00:00:02", 1)

def end(operation):
    outcome = here.outcome(operation, 20.0)
    assert outcome is not None and not here.is_pending(operation)
    return outcome

assert end(here.push(there, 4, AccessPattern.contiguous(0, 2), b"ab")).done
assert end(here.pull(there, 4, AccessPattern.strided(0, 1, 3, 3))).data == b"a36"
twin = Twin(0, end(here.pull(there, 4, AccessPattern.contiguous(0, 10))).data)
assert end(here.push_diff(there, 4, twin, b"ab23X5X789")).done
assert end(here.push(there, 4, AccessPattern.bitmap(4, 1, 3, b"\\x05"), b"YY")).done
refused = end(here.push(there, 4, AccessPattern.contiguous(31, 2), b"zz"))
assert refused.status == "it reaches beyond the area" and not refused.done
assert end(here.lock(there, 1)).done and end(here.unlock(there, 1)).done
assert end(here.isend(there, 7, b"finished")).done
here.flush()
print("used")
"""

LOSE = """
import json, sys
from knotless._core.endpoint import DeliveryError, Endpoint, EndpointError
here = Endpoint("e0", 8, give_up_s=0.2)
there, nobody = ("02:00:00:00:00:02", 9), ("02:00:00:00:00:99", 9)
here.send(there, b"1111", acknowledged=True)
assert here.flush(20)
here.send(nobody, b"not acknowledged")
assert here.flush(20)
told = []
for _ in range(2):
    here.send(nobody, b"two", acknowledged=True)
    here.send(there, b"3333", acknowledged=True)
    here.send(nobody, b"four", acknowledged=True)
    try:
        told.append(here.flush(20))
    except DeliveryError as error:
        told.append(str(error))
    assert here.flush(20), "it was told once"
lost = []
while (done := here.completion()) is not None:
    lost += [done[1]] * (done[1] is not None)
here.send(nobody, b"five", acknowledged=True)
while (done := here.completion()) is None:
    here.serve(0.05)
assert here.flush(20), "completion() has told it"
print(json.dumps({"told": told, "lost": [*lost, done[1]]}))
"""

BARRIER = """
import json, sys
from knotless._core.barrier import Barrier, BarrierError
algorithm, barriers, patience_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
members = ["02:00:00:00:00:01", "02:00:00:00:00:02"]
group = "03:00:00:00:00:01"
times = {"retry_s": 0.05, "patience_s": patience_s}
here = Barrier("e0", 5, members, algorithm=algorithm, group=group, **times)
print(here.rank, here.size, flush=True)
for line in sys.stdin:
    if line == "end\\n":
        break
    try:
        here.wait(float(line))
        print("passed", flush=True)
    except (TimeoutError, BarrierError) as error:
        print(f"{type(error).__name__}: {error}", flush=True)
for _ in range(barriers):
    here.wait(20)
assert here.flush(20)
here.answer(0)
print(json.dumps(here.counters()))
"""


def start(prefix: Sequence[str], script: str, *words: object) -> subprocess.Popen[str]:
    command = [*prefix, sys.executable, "-c", script, *(str(word) for word in words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def start_receiver(prefix: Sequence[str], *words: object) -> subprocess.Popen[str]:
    process = start(prefix, RECEIVE, *words)
    assert process.stdout is not None
    ready = process.stdout.readline()
    assert ready == "ready\n", process.communicate()
    return process


def end(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, error = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, error
    told = json.loads(out.splitlines()[-1])
    assert isinstance(told, dict)
    return told


@pytest.fixture
def veth() -> Iterator[tuple[list[str], list[str]]]:
    """Yield the command prefixes of two namespaces whose interfaces ``e0`` are a veth pair."""
    secret = secrets.token_hex(3)
    spaces = [f"km-{secret}-{side}" for side in "ab"]
    try:
        for namespace in spaces:
            namespaces.add(namespace)
        peer = f"address 02:00:00:00:00:02 mtu 1500 netns {spaces[1]}"
        command = f"link add e0 address 02:00:00:00:00:01 mtu 1500 type veth peer name e0 {peer}"
        namespaces.ip_batch([command, "link set e0 up"], namespace=spaces[0])
        namespaces.ip_batch(["link set e0 up"], namespace=spaces[1])
        a, b = (namespaces.enter(namespace, []) for namespace in spaces)
        yield a, b
    finally:
        namespaces.remove(spaces)


@pytest.mark.smoke
@pytest.mark.thin(1)
@pytest.mark.parametrize("bytes_", [4, 1400, 100_000])
def test_acknowledged_messages_arrive_in_order(
    veth: tuple[list[str], list[str]], bytes_: int
) -> None:
    count = 300
    receiver = start_receiver(veth[1], "e0", count, "")
    sender = start(veth[0], SEND, "e0", "02:00:00:00:00:02", count, bytes_, "yes")
    told = end(sender)
    assert told["failed"] == []
    assert told["held"] is False
    assert end(receiver)["numbers"] == {"02:00:00:00:00:01": list(range(count))}


@pytest.mark.smoke
def test_undelivered_messages_are_reported_once(veth: tuple[list[str], list[str]]) -> None:
    receiver = start_receiver(veth[1], "e0", 3, "")
    told = end(start(veth[0], LOSE))
    assert told["lost"] == ["peer lost"] * 5
    assert (
        told["told"]
        == [
            "messages that were not delivered: 2, the first to 02:00:00:00:00:99/9: peer lost: "
            "is there a process with this port on a host with this MAC?"
        ]
        * 2
    )
    end(receiver)


def say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.smoke
@pytest.mark.thin(1)
@pytest.mark.parametrize("algorithm", ["shuffle", "tree2", "concurrent", "unicast"])
def test_nobody_leaves_a_barrier_before_all_have_entered(
    veth: tuple[list[str], list[str]], algorithm: str
) -> None:
    members = [start(prefix, BARRIER, algorithm, 50, LIMIT_S) for prefix in veth]
    assert [heard(process) for process in members] == ["0 2", "1 2"]
    for limit_s in ("0.2", "0"):
        say(members[0], limit_s)
        late = "TimeoutError: not all processes have entered the barrier in time"
        assert heard(members[0]) == late
    for process in members:
        say(process, "20")
    assert [heard(process) for process in members] == ["passed"] * 2
    for process in members:
        say(process, "end")
    told = [end(process) for process in members]
    assert [counters["passed"] for counters in told] == [51, 51]


def test_a_dead_process_ends_all_barriers(veth: tuple[list[str], list[str]]) -> None:
    process = start(veth[0], BARRIER, "shuffle", 0, 0.5)
    assert heard(process) == "0 2"
    for limit_s in ("20", "0"):
        say(process, limit_s)
        assert heard(process) == (
            "BarrierError: process 1 of the barrier (02:00:00:00:00:02) does not answer: "
            "no more barriers will complete"
        )
    say(process, "end")
    assert end(process)["passed"] == 0


def test_c_programs_are_told_of_undelivered_messages(
    veth: tuple[list[str], list[str]],
) -> None:
    program = """
import ctypes
from knotless.base.package import NATIVE
class Address(ctypes.Structure):
    _fields_ = [("mac", ctypes.c_uint8 * 6), ("port", ctypes.c_uint8)]
library = ctypes.CDLL(str(NATIVE / "libknotless_endpoint.so"))
library.knotless_open.restype = ctypes.c_void_p
library.knotless_error.restype = ctypes.c_char_p
here = ctypes.c_void_p(library.knotless_open(b"e0", 8))
nobody = Address((2, 0, 0, 0, 0, 0x99), 9)
wait = ctypes.c_int64(20_000_000)
assert library.knotless_send(here, nobody, b"x", ctypes.c_size_t(1), 1, wait) == 0
assert library.knotless_flush(here, wait) == -5
assert b"02:00:00:00:00:99/9: peer lost" in library.knotless_error()
assert library.knotless_flush(here, wait) == 0
"""
    done = start(veth[0], program)
    _, error = done.communicate(timeout=HANG_S)
    assert done.returncode == 0, error


@pytest.mark.smoke
def test_a_group_is_a_destination(veth: tuple[list[str], list[str]]) -> None:
    group = "03:00:00:00:00:07"
    receiver = start_receiver(veth[1], "e0", 20, group)
    end(start(veth[0], SEND, "e0", group, 20, 3000, "no"))
    assert end(receiver)["numbers"] == {"02:00:00:00:00:01": list(range(20))}


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("Endpoint('e9', 1)", "interface e9: cannot be opened: No such device (os error 19)"),
        ("a = Endpoint('e0', 1); b = Endpoint('e0', 1)", "interface e0: port 1: another process"),
        ("Endpoint('lo', 1)", "interface lo: cannot be opened: not an Ethernet interface"),
        ("Endpoint('e0', 1).join('02:00:00:00:00:01')", "is not a group address"),
        ("Endpoint('e0', 1).send(('02:00', 1), b'')", "is not a MAC address"),
        ("Endpoint('e0', 1).send(('03:00:00:00:00:01', 1), b'', acknowledged=True)", "group"),
        ("Endpoint('e0', 1).receive(-1)", "a time is 0 or more seconds"),
        (f"{OPEN}[OWN])", None),
        (f"{OPEN}[OWN, OWN])", "two members on the network of e0 have one MAC"),
        (f"{OPEN}['02:00:00:00:00:02'])", f"e0 has MAC {OWN}, which is none of the members"),
        (f"{OPEN}[])", "a barrier has 1 to 4096 processes, not 0"),
        (f"{OPEN}['02:00'])", '"02:00" is not a MAC address'),
        (f"{OPEN}[OWN, OTHER], algorithm='tree3')", "give the MAC of a group of the members"),
        (f"{OPEN}[OWN, OTHER], algorithm='tree5')", 'there is no barrier "tree5"'),
        (f"{OPEN}[OWN], order=[0])", "only unicast has a visiting list"),
        (f"{OPEN}[OWN, OTHER], algorithm='unicast', order=[1, 1])", "visiting list"),
        (f"{OPEN}[OWN], retry_s=2)", "a patience of 10000000000 ns is too short"),
        (f"{OPEN}[OWN], group=OTHER)", "is not a group address"),
        ("b.Barrier('e9', 1, [OWN])", "interface e9: cannot be opened"),
    ],
)
def test_mistakes_are_reported(
    veth: tuple[list[str], list[str]], script: str, words: str | None
) -> None:
    imports = (
        "from knotless._core import barrier as b; from knotless._core.endpoint import Endpoint"
    )
    names = f"OWN, OTHER = '{OWN}', '02:00:00:00:00:02'"
    done = start(veth[0], f"{imports}; {names}; {script}")
    _, error = done.communicate(timeout=HANG_S)
    if words is None:
        assert done.returncode == 0, error
        return
    assert done.returncode == 1
    assert words in error.splitlines()[-1]


def test_c_programs_use_every_primitive(veth: tuple[list[str], list[str]], tmp_path: Path) -> None:
    program = tmp_path / "primitives"
    source = REPOSITORY / "core/messages/endpoint/tests/c/primitives.c"
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{NATIVE}"]
    library = [f"-L{NATIVE}", f"-Wl,-rpath,{NATIVE}", "-lknotless_endpoint"]
    subprocess.run(["cc", *strict, source, "-o", program, *library], check=True)
    keeper, user = (
        subprocess.Popen(
            [*prefix, program, role], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for prefix, role in ((veth[1], "keep"), (veth[0], "use"))
    )
    for process in (user, keeper):
        _, error = process.communicate(timeout=HANG_S)
        assert process.returncode == 0, error


def test_primitives_from_python(veth: tuple[list[str], list[str]]) -> None:
    keeper = start(veth[1], KEEP, "e0")
    assert keeper.stdout is not None
    assert keeper.stdout.readline() == "ready\n"
    done = start(veth[0], USE, "e0")
    out, error = done.communicate(timeout=HANG_S)
    assert done.returncode == 0, error
    assert out == "used\n"
    _, error = keeper.communicate(timeout=HANG_S)
    assert keeper.returncode == 0, error


@pytest.mark.smoke
def test_a_paused_interface_blocks_the_sender_and_loses_nothing(names: Names) -> None:
    """Two hosts send at full speed to a third: the switch pauses them, all datagrams arrive."""
    count = 300
    with EmulatedFabric(load("flat,3"), name=names.name, openflow_port=0, rest_port=0) as fabric:
        hosts = {host.name: host for host in fabric.fabric.hosts}
        fabric.daemon.reset()

        def inside(name: str) -> list[str]:
            return namespaces.enter(fabric.host(name).namespace, [])

        receiver = start_receiver(inside("h3"), "h3-eth0", 2 * count, "")
        senders = [
            start(inside(name), SEND, f"{name}-eth0", hosts["h3"].mac, count, 1400, "no")
            for name in ("h1", "h2")
        ]
        told = [end(sender) for sender in senders]
        received = end(receiver)
        paused = [
            sum(priority["paused_us"] for priority in channel["priorities"])
            for channel in fabric.daemon.counters()["channels"]
            if channel["channel"] in ("h1", "h2")
        ]
        assert fabric.daemon.counters()["lost_frames"] == 0
    assert all(one["held"] and one["held_back"] > 10 for one in told)
    assert all(us > 0 for us in paused)
    everything = {hosts[name].mac: list(range(count)) for name in ("h1", "h2")}
    assert received["numbers"] == everything


def test_a_sender_does_not_wait_for_an_emulator_that_was_killed(names: Names) -> None:
    """Nobody grants credit then: it sends without."""
    with EmulatedFabric(load("flat,2"), name=names.name, openflow_port=0, rest_port=0) as fabric:
        to = fabric.fabric.hosts[1].mac
        prefix = namespaces.enter(fabric.host("h1").namespace, [])
        sender = start(prefix, SEND_ON, "h1-eth0", to)
        assert sender.stdout is not None
        assert sender.stdout.readline() == "sending\n", sender.communicate()
        running = state.read(names)
        assert running is not None
        os.kill(running.processes["emulator"].pid, signal.SIGKILL)
        out, error = sender.communicate("go on\n", timeout=HANG_S)
    assert (sender.returncode, out) == (0, "sent\n"), error
