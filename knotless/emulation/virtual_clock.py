"""Programs in virtual time: the library that shows it to them, and the page where it is read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from knotless.base.package import native
from knotless.emulation import processes
from knotless.emulation.names import MARK, NETNS_DIRECTORY, SENDERS_MARK, SHELL_MARK, Names
from knotless.emulation.priority import VARIABLE, Priority

LIBRARY = native("libknotless_virtual_time.so")


def program_environment(
    names: Names,
    *,
    virtual_clock: bool,
    priority: Priority = Priority.NORMAL,
    several_hosts: bool = False,
) -> dict[str, str]:
    """Return the environment variables of a program on hosts of a fabric.

    They mark it as the fabric's, so that it ends with it, and tell it the ``priority`` of the
    fabric, which programs that measure times take as well. With ``virtual_clock`` it sees virtual
    time; it must be linked dynamically, see docs/virtual-clock.md. The address sanitizer, which
    wants to be the first library, takes it as well. ``several_hosts`` is for a program with sockets
    in more than one host.
    """
    environment = {MARK: names.name, VARIABLE: str(priority)}
    if several_hosts:
        environment[SENDERS_MARK] = names.name
    if virtual_clock:
        users = os.environ.get("ASAN_OPTIONS")
        environment |= {
            "LD_PRELOAD": str(LIBRARY),
            "KNOTLESS_CLOCK": str(names.clock_page),
            "ASAN_OPTIONS": ":".join(filter(None, [users, "verify_asan_link_order=0"])),
        }
    return environment


def programs_in_real_time(names: Names, hosts: Iterable[str]) -> list[str]:
    """Return the programs that run on hosts and have no virtual time, each with the reason.

    As ``h1: still (4711, linked statically)``. They ignore the library, as programs with the
    set-user-ID bit, statically linked ones and most of Go do, were started without it, or cannot
    read it. The hosts' own shells do not count: they are older than the page.
    """
    spaces = {}
    for host in hosts:
        with suppress(OSError):
            spaces[(NETNS_DIRECTORY / names.host_namespace(host)).stat().st_ino] = host
    programs = []
    living = processes.living_in(names.host_namespace(host) for host in spaces.values())
    for pid in sorted(process.pid for process in living):
        place = Path("/proc") / str(pid)
        with suppress(OSError):  # it may have ended
            maps = (place / "maps").read_text(errors="replace")
            is_shell = SHELL_MARK.encode() in (place / "cmdline").read_bytes()
            if f" {names.clock_page}\n" not in maps and not is_shell:
                name = (place / "comm").read_text(errors="replace").strip()
                host = spaces[(place / "ns" / "net").stat().st_ino]
                programs.append(f"{host}: {name} ({pid}, {_reason(place, maps)})")
    return programs


def _reason(place: Path, maps: str) -> str:
    """Return why a program in /proc with this memory map has no virtual time."""
    if "/ld-" not in maps:
        return "linked statically"
    if LIBRARY.name.encode() not in (place / "environ").read_bytes():
        return "started without it"
    return "set-user-ID, or may not read its library"
