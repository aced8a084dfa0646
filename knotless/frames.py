"""Counters of channels, and samples of runs, as pandas frames; pandas is optional."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from knotless.base.errors import KnotlessError
from knotless.results import results


class HasChannels(Protocol):
    """A running fabric: see :meth:`knotless.emulation.running_fabric.RunningFabric.channels`."""

    def channels(self) -> list[dict[str, Any]]:
        """Return a row for each virtual channel."""


def frame(source: HasChannels | str | Path) -> Any:
    """Return a pandas frame of the channels of a running fabric, or of the samples of a run.

    Parameters
    ----------
    source : RunningFabric, str or Path
        A running fabric, or the folder of a run (``results/EXPERIMENT-TIME-ID``).

    Returns
    -------
    pandas.DataFrame
        A row for each virtual channel, or for each sample. Of a run, ``attrs`` has its
        parameters, rows and versions.

    Raises
    ------
    KnotlessError
        pandas is not installed, the folder has no run, or the fabric has no emulator.

    Examples
    --------
    As root::

        before = kn.frame(fabric)
        paused = kn.frame(fabric).paused_us - before.paused_us

    """
    if not isinstance(source, str | Path) and not hasattr(source, "channels"):
        raise KnotlessError(
            f"source: {type(source).__name__} is neither a running fabric nor the folder of a run"
        )
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise KnotlessError("pandas is not installed: pip install 'knotless[frames]'") from None
    if not isinstance(source, str | Path):
        return pandas.DataFrame(source.channels())
    run, samples = results.read(Path(source))
    table = pandas.DataFrame(samples)
    table.attrs.update(run)
    return table
