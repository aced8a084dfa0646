"""Resource limits of a process (``ulimit``), checked before something fails for lack of them."""

from __future__ import annotations

import resource

from knotless.base.errors import KnotlessError
from knotless.base.memory import gib


def need_open_files(count: int, what: str, error: type[KnotlessError]) -> None:
    """Raise the limit of open files to ``count`` if needed, or ``error`` if that is forbidden."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= count:
        return
    if hard != unlimited and hard < count:
        raise error(f"{what} takes up to {count} open files, ulimit -n allows {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def need_address_space(count: int, what: str, error: type[KnotlessError]) -> None:
    """Raise ``error`` if a process may not have ``count`` bytes of address space."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY and soft < count:
        raise error(f"{what} takes up to {gib(count)} a process, ulimit -v allows {gib(soft)}")
