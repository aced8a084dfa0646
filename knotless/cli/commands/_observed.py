"""The running fabric that a command looks at, and changes in nothing."""

from __future__ import annotations

from knotless.cli.output import say
from knotless.emulation import state
from knotless.emulation.names import DEFAULT_NAME, Names, names_of
from knotless.emulation.requirements import require_fabrics


def observed(name: str | None) -> Names:
    """Return the names of the fabric that a command looks at, and say which if it was chosen.

    Without a ``name`` it is the only fabric that runs, or else the default. Raises
    :class:`EmulationError` if it does not run, or if no fabric can run here.
    """
    if name is None:
        running = state.running_fabrics()
        name = running[0] if len(running) == 1 else DEFAULT_NAME
        if name != DEFAULT_NAME:
            say(f"fabric {name}", err=True)
    names = names_of(name)
    if name not in state.running_fabrics():
        require_fabrics()
        raise state.no_fabric(name)
    return names
