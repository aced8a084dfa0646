"""Forge what others send to a controller, and what it keeps on disk; report what it does not bear.

Targets: frames of probes and of hosts in packet-ins, heads and bodies of REST requests, and the
files that a controller keeps (operators' changes, a change that goes on, losses of links, rules).
Each input must be taken or refused in one line; only a probe that was sent counts as one.

Example: .venv/bin/python -m tests.fuzz_border --cases 2500000 --seed 1
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from knotless.base.http_rules import LIMITS, HttpError
from knotless.controller import runtime
from knotless.controller.config import ConfigError
from knotless.controller.openflow.elements import WireError
from knotless.controller.openflow.guard import Guard, Limits
from knotless.controller.openflow.replies import cookie_of, read_packet_in
from knotless.controller.overrides import read_overrides
from knotless.controller.probes.frames import Frames, Probe, sender_of
from knotless.controller.reconcile import PROBE_COOKIE
from knotless.controller.rest.server import receive
from knotless.controller.updates.journal import UpdateJournal
from knotless.controller.updates.last_rules import LastRules
from knotless.controller.updates.quiescence import ChannelLosses
from knotless.topologies import load
from knotless.topologies.formats.files import to_json
from tests.support.forged_inputs import damaged
from tests.support.openflow_messages import packet_in

STATE = Path("state.json")
REQUESTS = (
    b"GET /status HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: Prometheus/2.53.0\r\n\r\n",
    b"POST /drain HTTP/1.1\r\nHost: lab\r\nAuthorization: Bearer 0123456789abcdef\r\n"
    b'Content-Length: 17\r\n\r\n{"what": "s1-s2"}',
    b"GET /fabric?x=%20 HTTP/1.0\r\nOrigin: http://lab\r\nTransfer-Encoding: chunked\r\n\r\n",
)
TOKENS = (
    *(b"\r\n", b"\n", b"\r", b"\r\n\r\n", b":", b" ", b"\t", b"\0", b"\xff", b"HTTP/1.1", b"GET "),
    *(
        b"Content-Length: 99999999999",
        b"Content-Length: -1",
        b"Transfer-Encoding: chunked",
        b"Host:",
    ),
    *(b"a" * 9000, b"A: b\r\n" * 120, b"\r\n folded", b"[" * 3000, b"/" * 3000, b"%00", b"\x1b[2J"),
)


def changed(rng: random.Random, data: bytes, tokens: tuple[bytes, ...]) -> bytes:
    """Return bytes of which some are replaced, removed, repeated or added."""
    held = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        begin = rng.randrange(len(held) + 1)
        end = min(len(held), begin + rng.choice([0, 1, 1, 4, 40]))
        part = bytes(held[begin:end])
        held[begin:end] = rng.choice([b"", part * 2, rng.randbytes(rng.randrange(9)), *tokens])
    return bytes(held[: rng.randrange(len(held) + 1)] if rng.random() < 0.1 else held)


@cache
def probes(*, per_port: bool) -> tuple[Frames, dict[bytes, Probe]]:
    """Return the probes of a controller: those that it has sent, by frame."""
    frames = Frames(7, per_port=per_port)
    frames.round = 70_000
    sent: dict[bytes, Probe] = {}
    for port in (1, 2, 40):
        for reflected in (False, True):
            text = frames.packet_out(5, [port], reflected=reflected)
            frame = bytearray(text[text.index(b"KNPR") - 18 :])
            # The switch sets the last bytes of the source address: the port.
            frame[9:12] = port.to_bytes(3, "big")
            probe = frames.read(bytes(frame))
            assert probe == Probe(5, port, reflected, 70_000)
            sent[bytes(frame)] = probe
    return frames, sent


def packet_ins(rng: random.Random) -> None:
    """A packet-in of a probe, or of a frame of a host: taken, refused, or dropped."""
    per_port = rng.random() < 0.5
    frames, sent = probes(per_port=per_port)
    original = rng.choice(list(sent))
    frame = (
        original
        if rng.random() < 0.2
        else changed(rng, original, (b"KNPR", b"\x81\x00", b"\x08\x06"))
    )
    probe = frames.read(frame)
    if probe is not None:
        # Only the port of the source address is not proven, unless the probe is bound to it.
        mine = Probe(5, probe.port, probe.reflected, 70_000)
        assert probe == mine, probe
        assert not per_port or probe in sent.values(), probe
    sender_of(frame)
    text = packet_in(rng.choice([1, 2, 0xFFFFFFFD]), frame, rng.choice([PROBE_COOKIE, 1]))
    if rng.random() < 0.7:
        text = changed(rng, text, (b"\x80\x00\x00\x04", b"\0\0", b"\xff\xff"))
    guard = Guard(Limits(), 0.0)
    try:
        passed = guard.received(text, 0.0)
    except WireError as error:
        one_line(error)
        return
    for message in passed:
        if message[1] != 10 or cookie_of(message) != PROBE_COOKIE:
            continue
        port, inside = read_packet_in(message)
        assert port is None or 0 <= port < 1 << 32
        frames.read(inside)
        sender_of(inside)


def requests(rng: random.Random) -> None:
    """A request of REST, in pieces of any size."""
    data = changed(rng, rng.choice(REQUESTS), TOKENS)
    size, place = rng.choice([1, 3, 17, 1 << 14]), 0

    def recv(most: int) -> bytes:
        nonlocal place
        part = data[place : place + min(size, most)]
        place += len(part)
        return part

    try:
        request = receive(recv, LIMITS)
    except ConnectionError:
        return
    except HttpError as error:
        one_line(error)
        return
    assert request.path.startswith("/")
    assert request.path.isascii()
    assert len(request.body) <= LIMITS.body_bytes
    assert not {"content-length", "transfer-encoding"} <= request.headers.keys()


@cache
def kept() -> Mapping[str, bytes]:
    """Return a valid file of each kind that a controller keeps."""
    fabric = to_json(load("ring,3"))
    rule = "cookie=0x6b6e6f74, table=0, priority=1,in_port=1 actions=output:2\n"
    values: dict[str, Any] = {
        "state": {"drained": ["s1-s2"], "options": {"engine": "dor"}, "configured": {}},
        "change": {"fabric": fabric, "flow_control": "pfc", "staying": ["h1"], "complete": False},
        "lost": {"s1:2-s2:3": [1, 2, 3]},
        "rules": {"s1": [rule, ""]},
    }
    return {name: json.dumps(value).encode() for name, value in values.items()}


READERS: Mapping[str, Callable[[], object]] = {
    "state": lambda: read_overrides(STATE),
    "change": lambda: UpdateJournal(STATE).read(),
    "lost": lambda: ChannelLosses(STATE).read(),
    "rules": lambda: LastRules(STATE).read(),
}


def kept_files(rng: random.Random) -> None:
    """A file that a controller keeps, damaged, or of another kind."""
    name = rng.choice(list(READERS))
    data = kept()[name if rng.random() < 0.9 else rng.choice(list(READERS))]
    text = damaged(rng, data).decode("utf-8", "replace")
    former = runtime.read_kept, runtime.is_kept
    runtime.read_kept, runtime.is_kept = (lambda *_: text), (lambda _: True)  # type: ignore[assignment]
    try:
        READERS[name]()
    except ConfigError as error:
        one_line(error)
    finally:
        runtime.read_kept, runtime.is_kept = former


def one_line(error: Exception) -> None:
    """Fail unless an error is one line."""
    assert str(error).strip()
    assert "\n" not in str(error), str(error)


TARGETS: Mapping[str, Callable[[random.Random], None]] = {
    "packet-ins": packet_ins,
    "requests": requests,
    "kept-files": kept_files,
}


def fuzz(target: str, seed: int, cases: int) -> list[str]:
    """Return what went wrong in some cases of a target, each with its number."""
    wrong = []
    for number in range(seed, seed + cases):
        try:
            TARGETS[target](random.Random(number))  # noqa: S311 - not for secrets
        except Exception:  # noqa: BLE001 - reported with its case
            wrong.append(f"{target} {number}: {traceback.format_exc()}")
    return wrong


def main() -> int:
    """Run the cases of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000, help="inputs for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", choices=list(TARGETS), action="append")
    options = parser.parse_args()
    wrong: list[str] = []
    for target in options.target or TARGETS:
        failed = fuzz(target, options.seed, options.cases)
        sys.stdout.write(f"{target}: {options.cases} inputs, {len(failed)} not borne\n")
        wrong += failed
    sys.stdout.write("".join(wrong[:20]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
