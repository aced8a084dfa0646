"""Makes a controller of its parts, each complete when it is made: the only place where all meet."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from knotless.base.errors import FabricError, KnotlessError
from knotless.controller import config, runtime
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.operations import Operations
from knotless.controller.overrides import Overrides, StateFile, recovered_overrides
from knotless.controller.peers import HaPeers
from knotless.controller.probes.discovery import Discovery
from knotless.controller.probes.learner import Explorer
from knotless.controller.reporter import EventReporter
from knotless.controller.rest.api import read_token
from knotless.controller.service import Service, log_desired
from knotless.controller.status import Status
from knotless.controller.switches import Switches
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.journal import History, UpdateJournal
from knotless.controller.updates.last_rules import LastRules
from knotless.controller.updates.quiescence import ChannelLosses
from knotless.controller.updates.timing import DEFAULT_TIMING
from knotless.controller.updates.worker import Worker

_LOG = logging.getLogger("knotless.controller")


def compose(path: Path | None, settings: Config, number: int | None) -> tuple[Service, Switches]:
    """Make a controller that goes on from what an earlier one has left in files.

    Returns its two sides: to operators, and to switches. ``path`` is the file of the configuration
    ``settings``, None: there is none. ``number`` is that of this one of several controllers, None:
    it is the only one. Raises KnotlessError if the fabric cannot be served as configured, or a file
    cannot be read.
    """
    if path is None:
        _LOG.info("no %s here: using the defaults", config.DEFAULT_FILE)
    token_file, kept_at = config.token_path(settings, path), config.state_path(settings, path)
    token = read_token(token_file) if token_file else None
    state_file = _read_state_file(settings, path, kept_at)
    state = state_file.state
    journal = UpdateJournal.beside(kept_at, shared=bool(settings.controllers))
    problem = _resume(state, journal)
    threads = runtime.Threads()
    explorer = None
    if settings.discovery == "learn":
        discovery = Discovery(settings.learn_quiet_s)
        explorer = Explorer(state=state, discovery=discovery, threads=threads)
    peers = HaPeers(state=state, state_file=state_file, journal=journal, number=number)
    history = History(settings.kept_changes, clock=runtime.unix_time_s)
    status = Status(
        state,
        last_change=history.last,
        role=peers.role,
        undeclared=list if explorer is None else explorer.problems,
    )
    status.note(problem)
    reporter = EventReporter(status=status, history=history, threads=threads)
    switches = Switches(
        state=state,
        reporter=reporter,
        threads=threads,
        state_file=state_file,
        timing=replace(
            DEFAULT_TIMING,
            emulator=config.emulator_path(settings, path),
            open_vswitch=config.open_vswitch_path(settings, path),
            precompute=Worker().call,
        ),
        has_probes=True,
        explorer=explorer,
        election=peers.election,
        losses=ChannelLosses.beside(kept_at),
        journal=journal,
        last_rules=LastRules.beside(kept_at),
    )
    operations = Operations(
        state=state,
        state_file=state_file,
        journal=journal,
        change_to=switches.change_to,
        read_again=switches.rule_watch.read_all,
    )
    service = Service(
        path=path,
        token=token,
        status=status,
        operations=operations,
        peers=peers,
        reporter=reporter,
        explorer=explorer,
        withdraw=switches.withdraw,
        threads=threads,
    )
    return service, switches


def _read_state_file(settings: Config, path: Path | None, kept_at: Path | None) -> StateFile:
    """Return what operators have requested, with the state of the fabric that follows from it."""
    fabric = config.load_fabric(settings, path)
    recovered, damage = recovered_overrides(kept_at) if kept_at else (Overrides(), None)
    kept = (recovered or Overrides()).current(settings, fabric)
    is_known = recovered is not None
    try:
        desired = DesiredState.compute(kept.applied_to(settings), fabric, kept.drained)
    except KnotlessError as error:
        if kept == Overrides():
            raise
        kept, is_known, damage = Overrides(), False, damage or f"{kept_at}: {error}"
        desired = DesiredState.compute(settings, fabric)
    log_desired(desired)
    state = FabricState(desired)
    state_file = StateFile(config=settings, overrides=kept, state=state, path=kept_at)
    if damage is not None:
        state_file.recover(damage, is_known=is_known)
    return state_file


def _resume(state: FabricState, journal: UpdateJournal) -> str | None:
    """Go on with an update that an earlier controller has begun; its steps are proven again.

    Returns why that is not possible, one line; None: it is, or there is no such update.
    """
    try:
        begun = journal.read()
        if begun is None:
            return None
        try:
            state.resume(begun)
        except FabricError as error:
            foreign = error.within("it is of another fabric")
            raise foreign.within(str(journal.path)) from error
    except KnotlessError as error:
        note = (
            f"{error}; so the change that was interrupted is not finished as it began: steps to"
            f" {state.desired.fabric.name} are proven without what else there was"
        )
        _LOG.error("%s", note)
        return note
    _LOG.warning("a change was interrupted: it goes on when all rules have been read")
    return None
