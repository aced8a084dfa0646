"""The limits that the system sets a process (``ulimit``), looked at before they are met."""

from __future__ import annotations

import resource

from common.errors import KnotlessError
from common.memory import gib


def need_open_files(count: int, what: str, error: type[KnotlessError]) -> None:
    """Raise the limit of open files to ``count`` if need be; ``error`` where that is forbidden."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft in (unlimited, max(soft, count)):
        return
    if hard not in (unlimited, max(hard, count)):
        raise error(f"{what} takes up to {count} open files, ulimit -n allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def need_address_space(count: int, what: str, error: type[KnotlessError]) -> None:
    """Raise ``error`` where a process may not have ``count`` bytes of address space."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY and soft < count:
        raise error(f"{what} takes up to {gib(count)} a process, ulimit -v allows {gib(soft)}")
