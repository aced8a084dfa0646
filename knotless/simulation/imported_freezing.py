"""Traffic that freezes a fabric that was read from files; see :mod:`knotless.simulation.freezing`.

Packets of one kind (a DSCP, an SL) are sent, with the settings that the files have of the switches.
Simulated switches have one number for the queue of a packet at the sender and its priority group
at the receiver, so packets are followed only if the two are the same wherever they go.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knotless.base.model_limits import PRIORITIES
from knotless.base.switch_settings import SwitchFile
from knotless.forwarding.state import ForwardingState
from knotless.importers.fabric import AnyFabric, RulesFabric, TableFabric, TableTraffic
from knotless.importers.next_hops import DROPPED, VcMap
from knotless.importers.switch_settings import ReadSettings, file_of
from knotless.simulation.freezing import SEARCHES, Freeze, find_freeze
from knotless.verification.imported_verdict import ImportedVerdict


def find_freeze_of_imported(
    imported: AnyFabric, verdict: ImportedVerdict, *, seed: int = 1, searches: int = SEARCHES
) -> Freeze:
    """Look for traffic that freezes an imported fabric, of which ``verdict`` is known.

    Raises
    ------
    SimulationError
        The settings of the switches do not fit, or what they do with packets cannot be followed.

    """
    if verdict.acyclic is None:
        return Freeze(None, reason=f"facts are missing: {verdict.missing[0]}")
    if verdict.acyclic:
        reason = "no channels can wait for each other in a cycle"
        return Freeze(False, reason=reason, assumes=())
    switches: SwitchFile | None = None
    states: list[ForwardingState | None]
    if isinstance(imported, RulesFabric):
        states = [traffic.state for traffic in imported.traffics]
    else:
        switches = _settings(imported)
        states = [_one_number(imported, traffic) for traffic in imported.traffics]
    answers: list[Freeze] = []
    for state in states:
        if state is None:
            reason = "packets have another queue than priority group, or are not paused somewhere"
            answers.append(Freeze(None, reason=reason))
            continue
        control = imported.flow_control
        freeze = find_freeze(state, control, switches=switches, seed=seed, searches=searches)
        if freeze.freezes or len(states) == 1:
            return freeze
        answers.append(freeze)
    reason = "packets of several kinds close the cycle together, and one kind is sent at a time"
    undecided = (answer for answer in answers if answer.freezes is None)
    return next(undecided, Freeze(None, reason=reason))


def _settings(imported: TableFabric) -> SwitchFile | None:
    """Return the settings of the switches; None if the files have none."""
    settings = imported.switch_settings()
    if all(read == ReadSettings() for read in settings.values()):
        return None
    return file_of(settings)[0]


def _one_number(imported: TableFabric, traffic: TableTraffic) -> ForwardingState | None:
    """Return the state of packets with their priority groups as virtual channels.

    None if some that can be held or waited for is another queue, or is not paused.
    """
    if imported.pausing is None:
        return traffic.state
    used = np.unique(traffic.state.dependencies[:, :4].reshape(-1, 2).astype(np.int64), axis=0)
    channel, vc = used.T
    group, queue = vc % PRIORITIES, vc // PRIORITIES
    stopped: NDArray[np.bool_] = imported.pausing[channel, group]
    only = np.arange(stopped.shape[1]) == queue[:, None]
    if (group != queue).any() or (stopped != only).any():
        return None
    vcs = traffic.vcs
    rows = np.where(vcs.rows < DROPPED, vcs.rows % PRIORITIES, vcs.rows)
    one = VcMap(vcs.channel_in, vcs.channel_out, vcs.row, rows.astype(np.uint8), vcs.labels)
    return traffic.with_tables(imported.hops, one).state
