"""The options that say what a verdict is on: flow control, settings of switches, freezes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from knotless.base.errors import EndpointError, KnotlessError
from knotless.base.files import write_whole
from knotless.base.flow_control import AUTO, CHOICES
from knotless.base.model_limits import MAX_PACKET_BYTES
from knotless.base.quantities import BYTES
from knotless.cli import complete
from knotless.cli.numbers import Whole
from knotless.cli.options import grouped

if TYPE_CHECKING:
    from knotless.base.flow_control import FlowControl
    from knotless.base.switch_settings import SwitchFile
    from knotless.forwarding.state import ForwardingState
    from knotless.simulation.freezing import Freeze
    from knotless.traffic.endpoints import EndpointModel

FLOW_CONTROL = (
    "Links that pause (802.3x): none, host links, between switches, or all; or PFC,"
    " credits, or credits with bubbles (rings keep room)"
)


def one_of(choices: tuple[str, ...]) -> dict[str, Any]:
    """Return how one of ``choices`` is shown and completed."""
    return {"metavar": "|".join(choices), "shell_complete": complete.choices(choices)}


flow_control_option = click.option(
    "--flow-control",
    type=click.Choice(CHOICES, case_sensitive=False),
    default=AUTO,
    show_default=True,
    metavar="|".join(CHOICES),
    help=f"{FLOW_CONTROL} on all. auto: what the fabric uses with --live; else pfc if frames wait"
    " in several priorities between switches, else pause.",
)


def read_switch_file(_: click.Context, __: click.Parameter, path: str | None) -> SwitchFile | None:
    """Return the settings in the file that an option names."""
    if path is None:
        return None
    from knotless.base import switch_settings  # loads pydantic

    return switch_settings.read(Path(path))


def switch_file_option(
    help_text: str, callback: Callable[..., Any] = read_switch_file
) -> Callable[[Any], Any]:
    """Return ``--switch``: the command gets what ``callback`` makes of the file, or None."""
    return click.option(
        "--switch", "switch_settings", callback=callback, metavar="F.yaml", help=help_text
    )


def read_endpoints(_: click.Context, __: click.Parameter, text: str | None) -> EndpointModel | None:
    """Return the end points of a file or preset; None without, and for hosts that take all."""
    if text is None:
        return None
    from knotless.traffic import endpoint_presets  # loads pydantic

    model = endpoint_presets.endpoints_named(text)
    return None if model.takes_all else model


endpoints_option = click.option(
    "--endpoints",
    callback=read_endpoints,
    metavar="F.yaml|PRESET",
    help="What hosts send before they take more: sink (nothing; the default), rdma-read,"
    " rdma-write, request-reply, load-store, or a file. See docs/endpoints.md.",
)


def refuse_with_endpoints(endpoints: EndpointModel | None, options: Mapping[str, object]) -> None:
    """Raise EndpointError if options are given whose answers would not be about end points."""
    for option, value in options.items():
        if endpoints is not None and value:
            raise EndpointError(
                f"{option} does not judge what hosts send before they take more: give it without"
                " --endpoints"
            )


@dataclass(frozen=True)
class SwitchOptions:
    """Settings of the switches to be judged (None: not known), and the longest packet."""

    switch_settings: SwitchFile | None
    packet_bytes: int


judged_switch_options = grouped(
    "switches",
    SwitchOptions,
    switch_file_option("Settings of the switches: judge their buffers too."),
    click.option(
        "--packet-bytes",
        type=Whole(1, MAX_PACKET_BYTES, unit=BYTES),
        default=1500,
        show_default=True,
        help="Longest packet (MTU): what --switch must reserve and have headroom for.",
    ),
)


@dataclass(frozen=True)
class FreezeOptions:
    """Whether to look for traffic that freezes the fabric, and the file for it."""

    freezing: bool
    write_trace: str | None

    def __post_init__(self) -> None:
        """Raise KnotlessError if there is no traffic to be written."""
        if self.write_trace is not None and not self.freezing:
            raise KnotlessError("--write-trace writes the traffic that --freeze finds: give both")

    def find(
        self,
        state: ForwardingState,
        flow_control: FlowControl,
        switches: SwitchFile | None,
        hash_seed: int = 0,
        endpoints: EndpointModel | None = None,
    ) -> Freeze | None:
        """Look for traffic that freezes a state, if that is wanted, and write it to the file."""
        if not self.freezing:
            return None
        from knotless.simulation.freezing import find_freeze  # loads the simulator

        freeze = find_freeze(
            state, flow_control, switches=switches, hash_seed=hash_seed, endpoints=endpoints
        )
        if self.write_trace is not None and freeze.freezes:
            write_whole(self.write_trace, freeze.trace)
        return freeze


freeze_options = grouped(
    "freeze",
    FreezeOptions,
    click.option(
        "--freeze",
        "freezing",
        is_flag=True,
        help="Look for traffic that freezes it, in simulation: a cycle alone does not.",
    ),
    click.option(
        "--write-trace",
        metavar="F.csv",
        help="Write the traffic to this file, for traffic start --trace, or simulate --turns"
        " --trace.",
    ),
)
