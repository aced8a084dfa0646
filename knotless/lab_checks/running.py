"""The student's running fabric, by the interfaces that ``knotless status`` and ``check`` use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from knotless.emulation.daemon import Counters, Daemon
from knotless.emulation.names import names_of
from knotless.emulation.ovs_dump import live_state
from knotless.emulation.report import report
from knotless.emulation.requirements import why_not
from knotless.forwarding.state import ForwardingState
from knotless.lab_checks.lab import TodoError, Work
from knotless.verification.check import Verdict, verdict_of


def status_of(work: Work, spec: str) -> dict[str, Any]:
    """Return the status of the running fabric; raises TodoError unless it is ``spec``."""
    if reason := why_not():
        raise TodoError(
            f"the running fabric cannot be seen: this {reason} (or judge the files alone:"
            " --files-only)"
        )
    name = str(work.fabric)
    status = report(names_of(name))
    if status is None or status["phase"] != "ready":
        raise TodoError(
            f"no fabric {name!r} is running: start {spec} as the sheet says, and run this command"
            " in another terminal while it runs"
        )
    if status["fabric"] != spec:
        raise TodoError(f"the running fabric is {status['fabric']}; the sheet asks for {spec}")
    return status


def live_verdict(work: Work) -> tuple[ForwardingState, Verdict]:
    """Return the state that the rules in the switches define, and the verdict on it."""
    state, in_use = live_state(str(work.fabric))
    return state, verdict_of(state, in_use)


def counters_of(work: Work) -> Counters:
    """Return the counters of the link emulator."""
    names = names_of(str(work.fabric))
    return Daemon(names.emulator_socket, {}).counters()


def wrong_setting(status: dict[str, Any], key: str, wanted: object, hint: str) -> Iterator[str]:
    """Yield a line if the running fabric was started with another value of an option."""
    value = status["settings"].get(key)
    if value != wanted:
        yield f"the running fabric has {key.replace('_', ' ')} {value}, not {wanted}: {hint}"
