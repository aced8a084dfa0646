"""The one exception family of the project.

Every mistake of a user is a :class:`KnotlessError`, raised where it is seen; callers
that know more add it with :meth:`KnotlessError.within` as the error climbs, and the
command line shows the result as one line.
"""

from __future__ import annotations


class KnotlessError(Exception):
    """Something the user can put right: what is wrong, where, and what would be right."""

    def within(self, where: str) -> KnotlessError:
        """Return the same error with ``where`` (a file, a switch, a link) put before it."""
        return type(self)(f"{where}: {self}")


class SpecError(KnotlessError):
    """A fabric spec, such as ``torus,4,4``, that cannot be read or built."""


class FabricError(KnotlessError):
    """A fabric that contradicts itself: dangling port, duplicate MAC, unknown switch."""


class EmulationError(KnotlessError):
    """A fabric that cannot be started, reached or removed on this machine as it is."""


class PlanError(KnotlessError):
    """Routes that cannot be had: unknown engine, too few virtual channels or VLANs."""


class RuleError(KnotlessError):
    """Rules that cannot be read, or that do not fit the fabric they are said to be for."""
