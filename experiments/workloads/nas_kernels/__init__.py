"""The kernels of the NAS Parallel Benchmarks: one file for each, listed here."""

from __future__ import annotations

from experiments.workloads.nas_kernels import (
    conjugate_gradient,
    embarrassingly_parallel,
    fourier_transform,
    integer_sort,
    lower_upper,
    multigrid,
)
from experiments.workloads.nas_kernels.kernel import Kernel, KernelError
from experiments.workloads.programs.communicator import require_power_of_two

KERNELS: dict[str, Kernel] = {
    module.KERNEL.name: module.KERNEL
    for module in (
        integer_sort,
        conjugate_gradient,
        embarrassingly_parallel,
        fourier_transform,
        multigrid,
        lower_upper,
    )
}


def find(name: str, problem_class: str, processes: int) -> Kernel:
    """Return a kernel; raises KernelError unless it has the class and can use the processes."""
    kernel = KERNELS.get(name)
    if kernel is None:
        raise KernelError(f"kernel {name!r}: there is {', '.join(KERNELS)}")
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
