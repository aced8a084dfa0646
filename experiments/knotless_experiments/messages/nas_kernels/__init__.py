"""The kernels of the NAS Parallel Benchmarks, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from knotless.base.plugins import Plugins
from knotless_experiments.messages.nas_kernels.kernel import Kernel, KernelError
from knotless_experiments.messages.programs.communicator import require_power_of_two


@cache
def kernels() -> Mapping[str, Kernel]:
    """Return the kernels by name, sorted."""
    return Plugins("knotless_experiments.messages.nas_kernels", Kernel)


def find(name: str, problem_class: str, processes: int) -> Kernel:
    """Return a kernel; raises KernelError if the name, the class or ``processes`` is invalid."""
    kernel = kernels().get(name)
    if kernel is None:
        raise KernelError(f"kernel must be one of {', '.join(kernels())}, not {name[:40]!r}")
    if problem_class not in kernel.limits:
        raise KernelError(
            f"kernel {name}: class must be one of {', '.join(kernel.limits)}, "
            f"not {problem_class[:40]!r}"
        )
    require_power_of_two(processes, f"kernel {name}")
    most = kernel.limits[problem_class]
    if processes > most:
        raise KernelError(
            f"kernel {name}, class {problem_class}: at most {most} processes, not {processes}"
        )
    return kernel
