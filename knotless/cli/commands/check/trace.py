"""One packet, traced link by link: ``knotless check --pair``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from knotless.base.errors import KnotlessError
from knotless.cli.answer import Answer, Headline, Several, Tone, print_answer
from knotless.cli.options import print_json
from knotless.forwarding.state import ForwardingState, Hop, Trace

_ROUNDING = 1e-9
"""More than the error of a sum of shares."""


def follow(
    state: ForwardingState,
    source: str,
    destination: str,
    label: str = "VLAN",
    shown: Callable[[Hop], Hop] = lambda hop: hop,
    ends_at: Callable[[int, int], bool] = lambda _destination, _switch: False,
    *,
    as_json: bool,
) -> NoReturn:
    """Print the links of one packet; exit with status 1 unless it arrives.

    If it may take one of several, each has its probability if all next hops are equally likely.
    ``label`` is what the labels of packets are called; ``shown`` returns a step with the label and
    the priority that are printed, ``ends_at`` whether a destination is an address of a switch (its
    number).
    """
    if state.source_number(source) is None:
        raise KnotlessError(f"--pair: {state.fabric.name} has no host {source[:40]!r}")
    number = state.destination_number(source, destination)
    if number is None:
        groups = "; 'all' and multicast:N (a declared group) are allowed too"
        raise KnotlessError(
            f"--pair: {state.fabric.name} has no host {destination[:40]!r}"
            + (groups if state.core.floods else "")
        )
    trace = state.trace_number(source, number)
    own = [switch for switch in trace.dropped if ends_at(number, switch)]
    got = [state.destination_name(host) for host, _ in trace.delivered]
    key = label.lower()
    shares = state.shares(source, number)
    if any(share < 1 - _ROUNDING for _, share in shares):
        links = [
            {**_link(state, shown(hop), key), "probability": round(share, 6)}
            for hop, share in shares
        ]
        got = list(dict.fromkeys(got))
    else:
        links = [_link(state, shown(hop), key) for hop in trace.hops]
    if as_json:
        print_json({"links": links, "delivered": got, "twice": trace.repeated})
    else:
        word, rest = ("delivered", f"to {', '.join(got)}") if got else ("not delivered", "")
        if not got:
            rest = f", {_fate(state, trace, own)}"
        elif trace.repeated:
            rest += ", more than once"
        tone = Tone.GOOD if got and not trace.repeated else Tone.BAD
        shown_links = []
        for link in links:
            likely = f"  {100 * link['probability']:.4g} %" if "probability" in link else ""
            named = f"  {label} {link[key]}" if link[key] else ""
            shown_links.append(f"{link['link']}{named}{likely}")
        headline = Headline(f"{source} to {destination}", word, rest, tone)
        print_answer(Answer(headline, why=[Several(shown_links, "links", len(links))]))
    sys.exit(0 if got and not trace.repeated else 1)


def _fate(state: ForwardingState, trace: Trace, own: Sequence[int]) -> str:
    """Describe where a packet ends that no host receives; ``own`` has the switches it is for."""
    names = state.channels.names
    if trace.unsupported:
        return f"what {names[trace.unsupported[0]]} does with it is not known"
    if trace.loops:
        return "it goes round for ever"
    if own:
        return f"it is for {names[own[0]]} itself"
    return f"it is dropped at {names[trace.dropped[0]]}" if trace.dropped else "nobody sends it"


def _link(state: ForwardingState, hop: Hop, key: str) -> dict[str, Any]:
    """Return the name of a link on a packet's path, and the label there (0: none) as ``key``."""
    channels = len(state.channels)
    if hop.channel < channels:
        return {"link": state.channels.name(hop.channel, hop.priority), key: hop.label}
    return {"link": state.destination_name(hop.channel - channels), key: hop.label}
