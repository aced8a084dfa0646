"""``knotless mn``: Mininet's command, with our links, switches and controller."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from knotless.base import python_file
from knotless.base.errors import EmulationError, SpecError
from knotless.base.flow_control import FLOW_CONTROLS
from knotless.base.suggestions import suggestion
from knotless.cli import complete
from knotless.cli.commands._plan_options import changed_plan_options
from knotless.cli.help import Command
from knotless.cli.numbers import Whole
from knotless.cli.options import own_name_option
from knotless.cli.priority import priority_option

EXAMPLE = """\b
Example: knotless mn --topo tree,2 --test pingall
         knotless mn --custom my.py --topo mine --link pfc,bw=100 --mac
         knotless mn --topo ring,4 --controller remote,ip=192.0.2.1
"""
TESTS = {
    "pingall": "pingAll",
    "pingpair": "pingPair",
    "iperf": "iperf",
    "iperfudp": "iperfUdp",
    "all": "all",
    "none": "none",
    "build": "none",
}
LINKS = ("default", "tc", "tcu", "ovs", *FLOW_CONTROLS)
SWITCHES = ("default", "ovs", "ovsk")
_REFUSED = {
    "clean": "--clean: Mininet's clean-up ends programs of the whole machine by their names;"
    " 'knotless down' removes a fabric",
    "xterms": "--xterms: open terminals with 'knotless attach HOST'",
    "innamespace": "--innamespace: all switches share one namespace",
    "pin": "--pin: hosts share all processors",
    "nat": "--nat: a fabric has no way out: its hosts reach only each other",
    "cluster": "--cluster: a fabric runs on one machine",
    "placement": "--placement: a fabric runs on one machine",
    "listenport": "--listenport: use 'dpctl' at the prompt, or ovs-ofctl on a switch",
}


@click.command("mn", cls=Command, epilog=EXAMPLE)
@click.option("--topo", default="minimal", show_default=True, help="Topology and its parameters.")
@click.option("--custom", metavar="FILE,...", help="Python files with topos, controllers or tests.")
@click.option(
    "--link",
    default="default",
    show_default=True,
    metavar=f"{'|'.join(LINKS)}[,bw=..]",
    shell_complete=complete.choices(LINKS),
    help="Which links pause, and the parameters of links that have none.",
)
@click.option("--switch", default="default", metavar="|".join(SWITCHES), help="Open vSwitch only.")
@click.option("--host", default="proc", metavar="proc", help="Hosts are namespaces.")
@click.option(
    "--controller",
    multiple=True,
    metavar="default|remote|none[,ip=..,port=..]",
    help="Ours, one that runs already, or none; may be repeated.",
)
@click.option(
    "--test", multiple=True, metavar="|".join(TESTS), help="Run it instead of the prompt."
)
@click.option("--pre", metavar="FILE", help="Lines for the prompt before the tests.")
@click.option("--post", metavar="FILE", help="Lines for the prompt after the tests.")
@click.option("--mac", is_flag=True, help="Number the hosts' MAC addresses.")
@click.option("--arp", is_flag=True, help="Give all hosts the addresses of all others.")
@click.option("--ipbase", "-i", default="10.0.0.0/8", show_default=True, help="Addresses of hosts.")
@click.option("--verbosity", "-v", default="info", show_default=True, help="Mininet's log level.")
@click.option("--wait", "-w", is_flag=True, help="Has no effect: switches are always waited for.")
@click.option("--twait", "-t", type=Whole(), help="Has no effect, as --wait.")
@click.option("--nolistenport", is_flag=True, help="Has no effect: switches never listen.")
@click.option("--clean", "-c", is_flag=True, help="Is refused.")
@click.option("--xterms", "-x", is_flag=True, help="Is refused.")
@click.option("--innamespace", is_flag=True, help="Is refused.")
@click.option("--pin", is_flag=True, help="Is refused.")
@click.option("--nat", is_flag=True, help="Is refused.")
@click.option("--cluster", help="Is refused.")
@click.option("--placement", help="Is refused.")
@click.option("--listenport", help="Is refused.")
@own_name_option
@click.option("--allow-deadlock", is_flag=True, help="Start it even if its plan can deadlock.")
@changed_plan_options
@priority_option
def command(
    topo: str,
    custom: str | None,
    link: str,
    switch: str,
    host: str,
    controller: tuple[str, ...],
    test: tuple[str, ...],
    pre: str | None,
    post: str | None,
    mac: bool,
    arp: bool,
    ipbase: str,
    verbosity: str,
    name: str,
    allow_deadlock: bool,
    priority: str,
    options: Mapping[str, Any],
    **others: Any,
) -> None:
    """Run Mininet's command with our links, switches and controller.

    TOPO is one of Mininet's, one of FILE, or a fabric spec of ours. LINK says which links pause:
    pause, pfc, credits, host, switch or none; otherwise it follows from the plan. Mininet's
    clean-up never runs.
    """
    for option, why in _REFUSED.items():
        if others.get(option):
            raise EmulationError(why)
    from knotless.emulation.mn import LEVELS, setLogLevel

    if verbosity not in LEVELS:
        raise EmulationError(f"--verbosity {verbosity[:40]!r}: one of {', '.join(LEVELS)}")
    customs = _customs(custom)
    choices = {**dict.fromkeys(TESTS), **customs.get("tests", {})}
    wanted = [one for text in test for one in text.split("+")]
    for one in wanted:
        if one.partition(",")[0].lower() not in choices and one.partition(",")[0] not in choices:
            raise EmulationError(f"--test {one[:40]!r}: there is no such test{_hint(one, choices)}")
    # Above this package, because its prompt runs these commands; so it is imported by name.
    api = import_module("knotless.mininet")
    flow_control, line = _link(link)
    net = api.Knotless(
        _topo(topo, customs.get("topos", {}), with_lines=not line),
        switch=_switch(switch),
        host=_host(host),
        link=partial(_mininet().TCLink, **line),
        controller=[
            _controller(one, customs.get("controllers", {})) for one in controller or ("default",)
        ],
        ipBase=ipbase,
        autoSetMacs=mac,
        autoStaticArp=arp,
        name=name,
        allow_deadlock=allow_deadlock,
        priority=priority,
        **{**options, **flow_control},
    )
    setLogLevel(verbosity)
    net.start()
    try:
        if pre is not None:
            api.CLI(net, script=pre)
        for one in wanted:
            _run_test(net, one, customs.get("tests", {}))
        if not wanted:
            api.CLI(net)
        if post is not None:
            api.CLI(net, script=post)
    finally:
        net.stop()


def _mininet() -> Any:
    from knotless.emulation import mn

    return mn


def _hint(word: str, choices: Mapping[str, object] | tuple[str, ...]) -> str:
    return f"; {suggestion(word, choices)}"


def _split(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Split ``name,argument,key=value`` as Mininet does."""
    name, args, params = _mininet().splitArgs(text)
    return str(name), list(args), dict(params)


def _customs(files: str | None) -> dict[str, Any]:
    """Return what the files of --custom define; later ones win."""
    customs: dict[str, Any] = {}
    if files is None:
        return customs
    paths = [files] if Path(files).is_file() else files.split(",")
    for path in paths:
        for key, value in python_file.run(Path(path), EmulationError).items():
            if key.lower() in ("topos", "controllers", "tests") and isinstance(value, Mapping):
                customs.setdefault(key.lower(), {}).update(value)
            elif key in ("links", "switches", "hosts") and value:
                raise EmulationError(
                    f"{path}: {key}: links, switches and hosts are those of the fabric: omit it"
                )
    return customs


def _topo(text: str, topos: Mapping[str, Any], *, with_lines: bool) -> Any:
    """Return the topology that --topo names."""
    from knotless.emulation.fabric_topo import FabricTopo
    from knotless.topologies import load
    from knotless.topologies.formats.files import looks_like_file
    from knotless.topologies.formats.graphs import TOPOHUB
    from knotless.topologies.registry import families

    mn = _mininet()
    mininets = {
        "minimal": mn.MinimalTopo,
        "linear": mn.LinearTopo,
        "reversed": mn.SingleSwitchReversedTopo,
        "single": mn.SingleSwitchTopo,
        "tree": mn.TreeTopo,
        "torus": mn.TorusTopo,
    }
    name, args, params = _split(text)
    make = {**mininets, **topos}.get(name)
    if make is None:
        choices = tuple(dict.fromkeys([*topos, *mininets, *families()]))
        is_known = name.lower() in families() or text.startswith(TOPOHUB)
        if not is_known and not looks_like_file(text):
            raise SpecError(
                f"--topo {text[:80]}: there is no topology {name!r}{_hint(name, choices)}"
            )
        return FabricTopo(load(text), with_lines)
    try:
        return make(*args, **params)
    except Exception as problem:
        reason = f"{type(problem).__name__}: {problem}".removesuffix(": ")
        raise EmulationError(f"--topo {text[:80]}: {reason}") from problem


def _link(text: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the flow control and the parameters of --link."""
    name, args, params = _split(text)
    if name not in LINKS or args:
        raise EmulationError(f"--link {text[:40]!r}: there are no such links{_hint(name, LINKS)}")
    return ({"flow_control": name} if name in FLOW_CONTROLS else {}), params


def _switch(text: str) -> Any:
    name, args, params = _split(text)
    if name not in SWITCHES or args:
        raise EmulationError(
            f"--switch {text[:40]!r}: switches are of the fabric's own Open vSwitch: omit it"
        )
    return partial(_mininet().OVSSwitch, **params)


def _host(text: str) -> Any:
    if text != "proc":
        raise EmulationError(f"--host {text[:40]!r}: hosts are namespaces: omit it")
    return _mininet().Host


def _controller(text: str, controllers: Mapping[str, Any]) -> Any:
    """Return the controller that --controller names, as a script would give it."""
    mn = _mininet()
    name, args, params = _split(text)
    choices = {
        "default": mn.DefaultController,
        "ref": mn.Controller,
        "ovsc": mn.OVSController,
        "remote": mn.RemoteController,
        "none": mn.NullController,
        **controllers,
    }
    if name not in choices or args:
        raise EmulationError(
            f"--controller {text[:40]!r}: it is not started here: start it yourself, and give"
            f" remote,ip=ADDRESS,port=PORT; known are {', '.join(choices)}"
        )
    return partial(choices[name], **params)


def _run_test(net: Any, text: str, tests: Mapping[str, Any]) -> None:
    """Run a test of Mininet's, or of a file of the user."""
    name, args, params = _split(text)
    if callable(own := tests.get(name)):
        own(net, *args, **params)
        return
    method = TESTS.get(name.lower(), name)
    if method == "all":
        net.pingAll()
        net.iperf()
    elif method == "iperfUdp":
        net.iperf(l4Type="UDP", **params)
    elif method != "none":
        getattr(net, method)(*args, **params)
