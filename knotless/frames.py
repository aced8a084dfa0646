"""Counters of channels, and samples of runs, as pandas frames; pandas is optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from knotless.base.errors import KnotlessError
from knotless.results import results


class HasChannels(Protocol):
    """A fabric, running or read from files, with rows of its channels."""

    def channels(self) -> list[dict[str, Any]]:
        """Return a row for each virtual channel."""


def frame(source: HasChannels | Sequence[Mapping[str, Any]] | str | Path) -> Any:
    """Return a pandas frame of the channels of a fabric, of rows, or of the samples of a run.

    Parameters
    ----------
    source : RunningFabric, Snapshot, sequence of mappings, str or Path
        A running fabric, a snapshot of one, rows such as those of its routes, or the folder of a
        run (``results/EXPERIMENT-TIME-ID``).

    Returns
    -------
    pandas.DataFrame
        A row for each channel, row or sample. Of a run, ``attrs`` has its
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
    if not isinstance(source, str | Path | list | tuple) and not hasattr(source, "channels"):
        raise KnotlessError(
            f"source: {type(source).__name__} is neither a fabric, running or read from files, nor"
            " rows, nor the folder of a run"
        )
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise KnotlessError("pandas is not installed: pip install 'knotless[frames]'") from None
    if not isinstance(source, str | Path):
        return pandas.DataFrame(source.channels() if hasattr(source, "channels") else source)
    run, samples = results.read(Path(source))
    table = pandas.DataFrame(samples)
    table.attrs.update(run)
    return table
