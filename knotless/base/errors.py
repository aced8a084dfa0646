"""The exceptions for mistakes of users.

All are subclasses of :class:`KnotlessError`. An error is raised where the mistake is detected;
callers add where it happened with :meth:`KnotlessError.within`, and the command line prints the
result as one line.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from knotless.base.printable import brief, shortened

_LOG = logging.getLogger("knotless.faults")


class KnotlessError(Exception):
    """An error that the user can fix; the message says what is wrong, where, and what is right.

    It has at most 200 characters of each name, which may be from a file of others.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(brief(str(message)))

    def within(self, where: str) -> KnotlessError:
        """Return the same error with the prefix ``where`` (a file, a switch, a link)."""
        return type(self)(f"{shortened(where)}: {self}")


class SpecError(KnotlessError):
    """A fabric spec, such as ``torus,4,4``, that cannot be read or built."""


class FabricError(KnotlessError):
    """An inconsistent fabric: an unconnected port, a duplicate MAC, an unknown switch."""


class EmulationError(KnotlessError):
    """A fabric that cannot be started, reached or removed on this machine."""


class PlanError(KnotlessError):
    """Routes that cannot be computed: unknown engine, too few virtual channels or VLANs."""


class RuleError(KnotlessError):
    """Rules that cannot be read, or that do not fit the fabric they are said to be for."""


class ProofError(KnotlessError):
    """A verdict that the specification of proofs does not cover, or a proof that is not checked."""


class StateError(KnotlessError):
    """The state of an earlier check cannot be used."""


class SimulationError(KnotlessError):
    """A simulation that makes no sense, or that would not fit into this machine."""


class SweepError(KnotlessError):
    """A grid that makes no sense, a folder that holds another one, or no workers."""


class SwitchSettingsError(KnotlessError):
    """Settings of a switch that are not possible; the message names file and key."""


class EndpointError(KnotlessError):
    """End points that are not possible; the message names file or preset, and key."""


class FaultError(KnotlessError):
    """A fault of Knotless or of a plug-in, and no mistake of the user."""


@contextmanager
def faults_in_one_line(task: str) -> Iterator[None]:
    """Log an exception that is no KnotlessError, and raise a FaultError of one line for it.

    ``task`` is what could not be done, such as ``planning``. A panic of the core is such an
    exception.
    """
    try:
        yield
    except KnotlessError:
        raise
    except Exception as error:
        _LOG.exception("%s failed", task)
        raise fault(task, error) from error


def fault(task: str, error: BaseException) -> FaultError:
    """Return the error that describes an unforeseen exception in one line."""
    reason = " ".join(str(error).split()) or "no reason given"
    return FaultError(
        f"{task} failed: {type(error).__name__}: {reason} (a fault of Knotless or of a plug-in;"
        " the log says where)"
    )
