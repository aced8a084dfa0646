"""Lab 3: rules written by hand, in which two VLANs give one switch two paths."""

from __future__ import annotations

from collections.abc import Iterator

from knotless.base.flow_control import FlowControl
from knotless.forwarding.state import ForwardingState
from knotless.lab_checks.lab import Lab, Work
from knotless.lab_checks.proofs import state_of_folder, wrong_verdict
from knotless.lab_checks.running import live_verdict, status_of, wrong_setting
from knotless.topologies import load
from knotless.verification.check import verdict_of

SPEC = "ring,3,hosts=2"
RULES = "rules"
SOURCES, TARGET = ("h3", "h4"), "h5"
"""Two hosts of switch s2, and one of s3."""


def rules(work: Work) -> Iterator[str]:
    """The rules deliver everything, cannot deadlock, and send the two hosts on two paths."""
    state, shown = state_of_folder(work.path(RULES)), work.shown(RULES)
    if state.fabric != load(SPEC):
        yield f"{shown}/fabric.json: it must be that of {SPEC}; copy it from the skeleton"
        return
    yield from wrong_verdict(verdict_of(state, FlowControl.PAUSE), shown)
    yield from _one_path(state, shown)


def _one_path(state: ForwardingState, what: str) -> Iterator[str]:
    """Yield a line if both hosts' frames take the same path, or have the same VLAN on it."""
    first, second = ([*state.trace(source, TARGET).hops] for source in SOURCES)
    both = f"{what}: the frames of {' and '.join(SOURCES)} to {TARGET}"
    between = len(state.channels)
    paths = [[hop.channel for hop in hops if hop.channel < between] for hops in (first, second)]
    labels = [{hop.label for hop in hops if hop.channel < between} for hops in (first, second)]
    if paths[0] == paths[1]:
        yield f"{both} leave s2 on the same port; one pair must pass s1"
    elif labels[0] & labels[1]:
        yield f"{both} are in the same VLAN, {min(labels[0] & labels[1])}"


def loaded(work: Work) -> Iterator[str]:
    """The switches of the running fabric hold such rules too."""
    status = status_of(work, SPEC)
    yield from wrong_setting(status, "controller", "none", "start it with --controller none")
    state, verdict = live_verdict(work)
    yield from wrong_verdict(verdict, "the running switches")
    yield from _one_path(state, "the running switches")


LAB = Lab(3, "vlans-by-hand", (rules,), (loaded,))
