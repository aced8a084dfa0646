"""The worker processes: local ones, or those of a Dask cluster."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

from knotless.base.errors import SweepError
from knotless.base.limits import need_open_files

if TYPE_CHECKING:
    from distributed import Client

CONNECT_LIMIT_S = 15
OPEN_FILES = 64
OPEN_FILES_A_WORKER = 16
_QUIET = {
    # The dashboard and similar services are not needed.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.admin.tick.limit": "1h",
}


def usual_workers() -> int:
    """Return the default number of local worker processes: one per core."""
    return len(os.sched_getaffinity(0))


@contextmanager
def local(workers: int) -> Iterator[Client]:
    """Run ``workers`` local processes, of one thread each, for the block.

    They listen on the loopback interface only, and accept connections only with a key that is
    created for the block, because a worker runs whatever it is sent.

    Raises
    ------
    SweepError
        They need more open files than the limit allows.

    """
    need_open_files(OPEN_FILES + OPEN_FILES_A_WORKER * workers, "a sweep", SweepError)
    import dask
    from distributed import Client, LocalCluster

    with dask.config.set(_QUIET):
        # Ctrl-C must reach only this process: the thread that starts workers is created here, and
        # its children ignore it. (Python's resource tracker, if started by it, would undo that.)
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            started = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                security=True,
                silence_logs=logging.CRITICAL,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        with started, Client(started) as client:
            yield client


@contextmanager
def remote(address: str) -> Iterator[Client]:
    """Use the cluster of the scheduler at ``address`` for the block.

    If the cluster uses certificates, they come from Dask's own configuration.

    Raises
    ------
    SweepError
        No scheduler answers, there are no workers, or their version of Knotless differs.

    """
    from distributed import Client

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=CONNECT_LIMIT_S)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        raise SweepError(f"--scheduler {address}: no scheduler answers: {reason}") from error
    with client:
        mine = version("knotless")
        try:
            theirs = client.run(_version)
        except Exception as error:
            raise SweepError(f"--scheduler {address}: workers without Knotless: {error}") from error
        if not theirs:
            raise SweepError(f"--scheduler {address}: there are no workers")
        for worker, other in sorted(theirs.items()):
            if other != mine:
                raise SweepError(f"{worker} has Knotless {other}, but this machine has {mine}")
        yield client


def _version() -> str:
    return version("knotless")
