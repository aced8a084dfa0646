"""The kernels of the NAS Parallel Benchmarks: one module for each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from common.plugins import plugins
from experiments.workloads.nas_kernels.kernel import Kernel, KernelError
from experiments.workloads.programs.communicator import require_power_of_two


@cache
def kernels() -> Mapping[str, Kernel]:
    """Return the kernels by name, in the order of their names."""
    return plugins("experiments.workloads.nas_kernels", Kernel)


def find(name: str, problem_class: str, processes: int) -> Kernel:
    """Return a kernel; raises KernelError unless it has the class and can use the processes."""
    kernel = kernels().get(name)
    if kernel is None:
        raise KernelError(f"kernel {name!r}: there is {', '.join(kernels())}")
    if problem_class not in kernel.limits:
        raise KernelError(
            f"kernel {name}: class {problem_class!r}: there is {', '.join(kernel.limits)}"
        )
    require_power_of_two(processes, f"kernel {name}")
    most = kernel.limits[problem_class]
    if processes > most:
        raise KernelError(
            f"kernel {name}, class {problem_class}: {processes} processes: it has work for {most}"
        )
    return kernel
