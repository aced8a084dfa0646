"""End points by name: how the hosts of common protocols answer, and what they reserve for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from knotless.base.errors import EndpointError
from knotless.base.suggestions import suggestion
from knotless.traffic.endpoints import EndpointModel, read

SINK = "sink"
"""The preset of hosts that take all that arrives, which is assumed without any."""
_SONG = "Song and Pinkston 2003; Hansson, Goossens and Radulescu 2007 (message-dependent deadlock)"


class Preset(NamedTuple):
    """End points by name: their classes, what hosts reserve, and the source of that."""

    classes: Mapping[str, Mapping[str, Any]]
    reserved: str
    source: str


PRESETS: Mapping[str, Preset] = {
    SINK: Preset(
        {"data": {}},
        "room for all that arrives: a host never waits for anything to take it",
        "Dally and Seitz 1987, who assume that messages are consumed at their destination",
    ),
    "rdma-read": Preset(
        {
            "read": {
                "sends_before_taking": ["response"],
                "outstanding": 16,
                "reserve_per_host": 16,
            },
            "response": {},
        },
        "responder resources of each queue pair (one for each pair of hosts) for as many reads as"
        " its requester has outstanding, 16; a response goes to memory that the requester has"
        " registered before it asked",
        "InfiniBand Architecture Specification, volume 1, chapter 12: responder resources and"
        " initiator depth of a connection (rdma_connect(3)); ibv_modify_qp(3): max_dest_rd_atomic"
        " and max_rd_atomic. RoCEv2 (annex A17) has the same transport",
    ),
    "rdma-write": Preset(
        {
            "write": {"sends_before_taking": ["ack"], "outstanding": 1, "reserve_per_host": 1},
            "ack": {},
        },
        "the state of each queue pair (one for each pair of hosts) holds the one acknowledgement"
        " that it owes: acknowledgements are cumulative, so writes that wait for one count as one"
        " message here",
        "InfiniBand Architecture Specification, volume 1, 9.7.5.1.2: coalesced acknowledge"
        " messages; writes go to registered memory and need no responder resources",
    ),
    "request-reply": Preset(
        {"request": {"sends_before_taking": ["reply"]}, "reply": {}},
        "nothing: requests of all senders share a buffer, which stops when a reply cannot leave",
        _SONG,
    ),
    "load-store": Preset(
        {
            "load": {"sends_before_taking": ["load-data"]},
            "store": {"sends_before_taking": ["store-done"]},
            "load-data": {},
            "store-done": {},
        },
        "nothing at the target: loads and stores share a buffer, which stops when a response cannot"
        " leave; the requester takes responses, as it has a place for each before it asks",
        "AMBA AXI (Arm IHI 0022E, A3.3.1): of the dependencies between handshakes none forbids a"
        f" subordinate to hold off addresses until earlier responses have been accepted; {_SONG}",
    ),
}
"""The presets, by name."""


def preset(name: str) -> EndpointModel:
    """Return the end points of a preset. Raises KeyError if there is none."""
    return EndpointModel.from_values({"classes": PRESETS[name].classes}, name)


def endpoints_named(text: str) -> EndpointModel:
    """Return the end points of a preset, or in a YAML file; raises EndpointError."""
    if text in PRESETS:
        return preset(text)
    if "/" not in text and not text.endswith((".yaml", ".yml")) and not Path(text).is_file():
        hint = suggestion(text, PRESETS)
        raise EndpointError(f"there are no end points {text!r}: give a file F.yaml; {hint}")
    return read(Path(text))
