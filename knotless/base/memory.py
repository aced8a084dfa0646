"""The amount of free memory, what work takes of it, and a pause of the garbage collector.

Work that would not fit is refused by the estimates of :class:`Cost`.
``tests/unit/base/test_memory_costs.py`` runs what each is for, and compares it with the memory that
was used.
"""

from __future__ import annotations

import gc
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path, PurePosixPath

from knotless.base.errors import KnotlessError

SMALL_BYTES = 64 << 20
"""Allowed without a look at what is free, which takes longer than planning a small fabric."""

_FILES_OF_GROUP = {
    "cgroup2": ("memory.max", "memory.current", "inactive_file"),
    "cgroup": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""By the version of cgroups: the limit, what is in use, and what of it the kernel can give back."""
_LIMITS = {0: resource.RLIMIT_AS, 5: resource.RLIMIT_DATA}
"""By the field of ``/proc/self/statm`` that counts towards the limit."""


def free_bytes() -> int:
    """Return how many bytes this process may still use: of the machine, its cgroup and its limits.

    The limits are those of ``ulimit -v`` and ``-d``.
    """
    return max(0, min([_left_of_machine(), *_left_of_limits(), *_left_of_groups()]))


def _left_of_machine() -> int:
    # Mininet's Python, which reads fabrics too, has no psutil.
    with Path("/proc/meminfo").open(encoding="ascii") as lines:
        available = next(line for line in lines if line.startswith("MemAvailable:"))
    return 1024 * int(available.split()[1])


def _left_of_limits() -> list[int]:
    """Return what the limits of ``ulimit -v`` and ``-d`` leave; an empty list without them."""
    limits = {field: resource.getrlimit(limit)[0] for field, limit in _LIMITS.items()}
    limits = {field: soft for field, soft in limits.items() if soft != resource.RLIM_INFINITY}
    if not limits:
        return []
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return [soft - resource.getpagesize() * int(pages[field]) for field, soft in limits.items()]


def _left_of_groups(proc: Path = Path("/proc/self"), root: Path = Path("/")) -> list[int]:
    """Return what each cgroup of this process that has a limit leaves; see cgroups(7).

    A service, a container or a batch job is limited in the cgroup of the process or in one above.
    """
    left: list[int] = []
    for kind, group in _memory_groups(proc, root):
        most, usage, inactive = _FILES_OF_GROUP[kind]
        try:
            limit = (group / most).read_text(encoding="ascii").strip()
            if limit != "max":
                stat = (group / "memory.stat").read_text(encoding="ascii").split()
                given_back = int(stat[stat.index(inactive) + 1])
                used = int((group / usage).read_text(encoding="ascii"))
                left.append(int(limit) - used + given_back)
        except (OSError, ValueError):
            continue
    return left


def _memory_groups(proc: Path, root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the version and folder of each cgroup that can limit the memory of this process."""
    try:
        mounts = (proc / "mountinfo").read_text(encoding="utf-8").splitlines()
        lines = (proc / "cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    groups: dict[str, PurePosixPath] = {}
    for line in lines:
        hierarchy, controllers, name = (*line.split(":", 2), "", "")[:3]
        if hierarchy == "0":
            groups["cgroup2"] = PurePosixPath(name)
        elif "memory" in controllers.split(","):
            groups["cgroup"] = PurePosixPath(name)
    for mount in mounts:
        fields, _, described = mount.partition(" - ")
        mounted, point = fields.split()[3:5]
        kind, *_, options = described.split()
        if kind not in groups or (kind == "cgroup" and "memory" not in options.split(",")):
            continue
        top = root / point.lstrip("/")
        # In a container, the mount may begin at the group itself, whose path is that of the host.
        inside = groups[kind].is_relative_to(mounted)
        below = groups[kind].relative_to(mounted) if inside else PurePosixPath()
        for path in (below, *below.parents):
            yield kind, top / path


class Cost(Enum):
    """Bytes for each of something, while it is worked on, and the files that refuse by them."""

    FABRIC_FILE = 12, "byte of the file of a fabric", "topologies/formats/files.py"
    IMPORTED_FILE = 12, "byte of a file to be imported", "importers/reading.py"
    INFINIBAND_PAIR = 12, "LID and destination LID of a subnet", "importers/infiniband/fabric.py"
    ROUTER_PAIR = (
        *(22, "edge of routers, and edge or range of addresses"),
        "importers/routers/fabric.py importers/routers/routes.py",
    )
    LISTED_PATH = 6, "listed path, and switch or listed path", "importers/neutral/fabric.py"
    SWITCH_PAIR = 26, "pair of switches in a plan, with broadcast trees", "routing/plan.py"
    TURN = 18, "turn at a switch, from a channel to a channel", "routing/plan.py"
    HOP = 30, "channel of a path that is written out, with VLANs", "routing/path_memory.py"
    NEXT_HOP = 12, "destination at a switch, in a balanced table", "routing/graphs/balance.py"
    NEXT_HOPS = 16, "switch or channel, and destination", "routing/graphs/next_hop_sets.py"
    INTERMEDIATE = 30, "intermediate of two switches", "routing/choices/source_choices.py"
    SIMULATION = 2_000_000, "simulation", "simulation/memory.py"
    SIMULATED_CHANNEL = 1_800, "channel: state, counters, frames", "simulation/memory.py"
    SIMULATED_FLOW = 1_500, "flow: its latency histogram, twice", "simulation/memory.py"
    SIMULATED_HOP = 100, "channel between switches and VLAN", "simulation/memory.py"
    SIMULATED_SENDING = 10, "destination in a phase", "simulation/memory.py"

    def __init__(self, each_bytes: int, thing: str, files: str) -> None:
        self.each_bytes, self.thing, self.files = each_bytes, thing, files.split()

    def bytes_for(self, count: int) -> int:
        """Return the bytes that ``count`` of these take."""
        return self.each_bytes * count


def refuse_beyond(what: str, needed: float, error: type[KnotlessError]) -> None:
    """Raise ``error`` if ``what`` needs more bytes than are free."""
    if needed > SMALL_BYTES and needed > (free := free_bytes()):
        raise error(f"{what} takes about {gib(needed)}, {gib(free)} are free")


def gib(count: float) -> str:
    """Return a number of bytes as text in GiB."""
    return f"{count / 2**30:.1f} GiB"


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disable the garbage collector, for code that creates millions of objects and no cycles.

    The collector scans all objects each time enough new ones exist. This takes half of the time of
    compiling rules, and two thirds for a hundred thousand rules.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
