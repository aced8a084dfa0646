"""A running fabric as its user sees it: commands, and frames between all hosts."""

from __future__ import annotations

import io
import itertools
import json
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from knotless.base.errors import KnotlessError
from knotless.cli.commands import check, status
from knotless.emulation.names import NETNS_DIRECTORY, Names
from knotless.emulation.namespaces import inside
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import group_mac

ETHERTYPE = 0x88B5
"""IEEE 802, local experimental: what no program of a host listens to."""
FRAME_BYTES = 60
ARRIVAL_S = 5.0
COMMAND_S = 300.0
KNOTLESS = Path(sys.executable).with_name("knotless")


@dataclass(frozen=True)
class Answer:
    """What a command has printed, and its exit status; ``asked_s`` is when it began (monotonic)."""

    text: str
    exit_status: int
    asked_s: float

    @cached_property
    def value(self) -> Any:
        """What it has printed as JSON; None if it ended with an error."""
        return json.loads(self.text) if self.exit_status in (0, 1) else None


class Commands:
    """The commands of ``knotless`` for one running fabric."""

    def __init__(self, names: Names) -> None:
        self._name = names.name

    def status(self) -> Answer:
        """Run ``knotless status``, in this process."""
        return self._here(status.command, "--name", self._name)

    def check(self) -> Answer:
        """Run ``knotless check --live --json``, in this process."""
        return self._here(check.command, "--live", "--json", "--name", self._name)

    def run(self, *words: str) -> None:
        """Run another command. Raises RuntimeError with its error."""
        command = [str(KNOTLESS), *words, "--name", self._name]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=COMMAND_S
        )
        if done.returncode:
            raise RuntimeError(f"knotless {' '.join(words)}: {done.stderr.strip()}")

    @staticmethod
    def _here(command: Any, *words: str) -> Answer:
        began_s, printed, exit_status = time.monotonic(), io.StringIO(), 0
        try:
            with redirect_stdout(printed):
                command.main(words, standalone_mode=False)
        except KnotlessError as error:
            return Answer(str(error), 2, began_s)  # as knotless/cli/main.py has it
        except SystemExit as end:
            if end.code not in (0, 1):
                raise  # a signal ends this process (knotless/emulation/signals.py)
            exit_status = int(end.code or 0)
        return Answer(printed.getvalue(), exit_status, began_s)


class Deliveries:
    """Frames between all hosts of a running fabric, with a socket in the namespace of each."""

    def __init__(self, fabric: Fabric, names: Names) -> None:
        self._hosts = fabric.hosts
        self._sockets: list[socket.socket] = []
        self._selector = selectors.DefaultSelector()
        self._rounds = itertools.count(1)
        for number, host in enumerate(fabric.hosts):
            with inside(str(NETNS_DIRECTORY / names.host_namespace(host.name))):
                one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
            self._sockets.append(one)
            one.bind((f"{host.name}-eth0", ETHERTYPE))
            one.setblocking(False)
            self._selector.register(one, selectors.EVENT_READ, number)

    def __enter__(self) -> Self:
        """Do nothing; the sockets are closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the sockets."""
        self._selector.close()
        for one in self._sockets:
            one.close()

    def lost(self, groups: Mapping[int, Collection[str]]) -> list[str]:
        """Send a frame from each host to each other one, and to each group.

        Return who has not received one that others have sent it, each in a line.
        """
        number = next(self._rounds).to_bytes(4, "big")
        hosts = [host.name for host in self._hosts]
        pairs = list(itertools.permutations(range(len(hosts)), 2))
        expected = {(a, b, 0) for a, b in pairs}
        for group, members in groups.items():
            expected |= {(a, b, group) for a, b in pairs if hosts[b] in members}
        for source in range(len(hosts)):
            for to, group in self._addresses(source, groups):
                own = bytes.fromhex(self._hosts[source].mac.replace(":", ""))
                words = source.to_bytes(2, "big") + group.to_bytes(2, "big")
                frame = to + own + ETHERTYPE.to_bytes(2, "big") + number + words
                with suppress(OSError):  # its link has no carrier
                    self._sockets[source].send(frame.ljust(FRAME_BYTES, b"\0"))
        deadline_s = time.monotonic() + ARRIVAL_S
        while expected and (left_s := deadline_s - time.monotonic()) > 0:
            for key, _ in self._selector.select(left_s):
                for frame in self._waiting(key.data):
                    if frame[14:18] == number:
                        source, group = (int.from_bytes(frame[k : k + 2], "big") for k in (18, 20))
                        expected.discard((source, key.data, group))
        return [
            f"{hosts[b]} does not receive {f'group {group}' if group else ''} from {hosts[a]}"
            for a, b, group in sorted(expected)
        ]

    def _addresses(
        self, source: int, groups: Mapping[int, Collection[str]]
    ) -> Iterator[tuple[bytes, int]]:
        """Yield the addresses to which a host sends, each with the group or 0."""
        for number, host in enumerate(self._hosts):
            if number != source:
                yield bytes.fromhex(host.mac.replace(":", "")), 0
        for group in groups:
            yield group_mac(group).to_bytes(6, "big"), group

    def _waiting(self, number: int) -> Iterator[bytes]:
        """Yield the frames that have arrived at a host."""
        with suppress(OSError):  # none is left, or its link has lost its carrier
            while True:
                yield self._sockets[number].recv(1 << 11)


def pings(fabric: Fabric, names: Names, pairs: Sequence[tuple[int, int]]) -> list[Any]:
    """Start pings between hosts, given by their places, that go on until they are killed."""
    return [
        subprocess.Popen(
            [
                *("nsenter", f"--net={NETNS_DIRECTORY / names.host_namespace(hosts[0].name)}"),
                *("ping", "-q", "-i", "0.1", hosts[1].ip),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for hosts in ((fabric.hosts[a], fabric.hosts[b]) for a, b in pairs)
    ]
