"""The start of the command: Ctrl-C is answered from here on, while the rest is being imported.

``bin/knotless`` starts Python with Ctrl-C held back until :func:`start` can answer it.
"""

from __future__ import annotations

import _thread
import atexit
import gc
import os
import resource
import signal
import sys
import threading
import time
from types import FrameType
from typing import NoReturn

ADDRESS_SPACE_BYTES = 256 << 20
"""What the libraries and their threads take."""
INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""
AGAIN_S = 0.05
"""After this time Ctrl-C is repeated. If it is lost in a callback again, it is repeated again."""


def start() -> None:
    """Run the command."""
    _open_standard_streams()
    # A shell that starts a job in the background has it ignore Ctrl-C.
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if not ignored:
        signal.signal(signal.SIGINT, _leave)
        sys.unraisablehook = _again
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _need_address_space()
    is_interrupted = False

    def end_if_interrupted() -> None:
        if is_interrupted:
            os._exit(INTERRUPTED)

    # What is registered first is called last. Python itself then does not end: where threads of
    # libraries still run, such as those of Dask that close its workers, it can abort.
    atexit.register(end_if_interrupted)
    try:
        gc.disable()  # what imports make stays
        from knotless.cli.main import main

        main.imported = _collect
        main()
    except KeyboardInterrupt:
        _leave()
    except SystemExit as end:
        is_interrupted = end.code == INTERRUPTED
        raise
    finally:
        # If Ctrl-C has interrupted an exec() of text, as dataclasses use it, Python remembers that
        # and would end by the signal, though the command exits with 130. Any other exec() of text
        # has Python forget it.
        exec("")  # noqa: S102 - no input
        if not ignored:
            signal.signal(signal.SIGINT, _leave)


def _collect() -> None:
    """Enable collections, which leave out all that is there."""
    gc.freeze()
    gc.enable()


def _leave(_signal: int = signal.SIGINT, _frame: FrameType | None = None) -> NoReturn:
    """End at once: while Python imports or tidies up, an exception would be lost or be shown."""
    os.write(2, b"knotless: interrupted\n")
    os._exit(INTERRUPTED)


def _again(unraisable: sys.UnraisableHookArgs) -> None:
    """Repeat Ctrl-C where it was raised in a callback, which lets no exception pass.

    Neither does this function, so a thread does it. One of :mod:`threading` would take locks that
    the callback may hold.
    """
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        _thread.start_new_thread(_interrupt_later, ())
    else:
        sys.__unraisablehook__(unraisable)


def _interrupt_later() -> None:
    time.sleep(AGAIN_S)
    if main := threading.main_thread().ident:
        signal.pthread_kill(main, signal.SIGINT)


def _need_address_space() -> None:
    """End where the libraries could not even be loaded: OpenBLAS would send Ctrl-C then."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed != resource.RLIM_INFINITY and allowed < ADDRESS_SPACE_BYTES:
        wanted, there = ADDRESS_SPACE_BYTES >> 20, allowed >> 20
        os.write(2, f"knotless: needs {wanted} MiB, ulimit -v allows {there} MiB\n".encode())
        os._exit(2)


def _open_standard_streams() -> None:
    """Open those that are closed, so that no file that is opened takes their place."""
    for number, mode in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)


if __name__ == "__main__":
    start()
