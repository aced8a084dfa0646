"""Free memory is that of the machine, of limits of the process, and of its cgroups."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.base import memory

V2 = "29 23 0:26 {mounted} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 {mounted} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


def _left(tmp_path: Path, mountinfo: str, cgroup: str, limits: dict[str, int | str]) -> list[int]:
    """Return what groups leave, each of which uses 70 bytes, 20 of which can be given back."""
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "mountinfo").write_text(mountinfo)
    (proc / "cgroup").write_text(cgroup)
    for path, limit in limits.items():
        group = tmp_path / "sys/fs/cgroup" / path
        group.mkdir(parents=True, exist_ok=True)
        is_v1 = path.startswith("memory")
        (group / ("memory.limit_in_bytes" if is_v1 else "memory.max")).write_text(f"{limit}\n")
        (group / ("memory.usage_in_bytes" if is_v1 else "memory.current")).write_text("70\n")
        stat = "cache 40\ntotal_inactive_file 20\n" if is_v1 else "anon 9\ninactive_file 20\n"
        (group / "memory.stat").write_text(stat)
    return memory._left_of_groups(proc, tmp_path)


@pytest.mark.parametrize(
    ("mountinfo", "cgroup", "limits", "left"),
    [
        (V2, "0::/\n", {"": 100}, [50]),
        (V2, "0::/\n", {"": "max"}, []),
        # systemd: MemoryMax= of a service, of its slice, or of both.
        (V2, "0::/system.slice/a.service\n", {"system.slice/a.service": 100}, [50]),
        (V2, "0::/system.slice/a.service\n", {"system.slice": 90}, [40]),
        (V2, "0::/s/a\n", {"s/a": 100, "s": 90, "": "max"}, [50, 40]),
        # Other groups do not matter.
        (V2, "0::/s/a\n", {"s/b": 100}, []),
        # Slurm, Docker: version 1, where all levels can be seen, or only the process's own.
        (V1, "9:cpu:/x\n4:memory:/slurm/job_1\n", {"memory/slurm/job_1": 100}, [50]),
        (V1, "4:memory:/docker/1f\n0::/docker/1f\n", {"memory": 100}, [50]),
        (V1, "4:memory:/\n", {"memory": 9223372036854771712}, [9223372036854771662]),
        (V1, "9:cpu:/x\n", {"memory/x": 100}, []),
        # Names may have colons; files may be damaged.
        (V2, "0::/a:b\n", {"a:b": 100}, [50]),
        (V2, "0::/a\n", {"a": "many"}, []),
        (V2, "", {"a": 100}, []),
    ],
)
def test_limits_of_cgroups(
    mountinfo: str, cgroup: str, limits: dict[str, int | str], left: list[int], tmp_path: Path
) -> None:
    assert _left(tmp_path, mountinfo.format(mounted="/"), cgroup, limits) == left


@pytest.mark.parametrize("text", [V2, V1])
def test_a_container_sees_its_own_group_only(text: str, tmp_path: Path) -> None:
    """The mount begins at the container's group, or /proc names a path that is not mounted."""
    cgroup = "0::/docker/1f/job\n4:memory:/docker/1f/job\n"
    top = "" if text == V2 else "memory/"
    left = _left(tmp_path, text.format(mounted="/docker/1f"), cgroup, {f"{top}job": 100})
    assert left == [50]


def test_what_this_machine_leaves_is_a_number() -> None:
    assert memory.free_bytes() >= 0
