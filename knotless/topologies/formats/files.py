"""Fabric files: JSON is read and written; graphs and formats of other programs are read.

The JSON format (docs/fabric-files.md describes all):

``{"name", "switches": [{"name", "dpid"}], "hosts": [{"name", "mac", "ip", "switch", "port"}],
"links": [{"a", "a_port", "b", "b_port", "rate_mbps", "delay_us"}]}``. Optional: ``rate_mbps`` and
``delay_us`` of hosts, ``"ip_invented": true`` of one whose ``ip`` is only a number in its place,
``"server"`` of those that are interfaces of one server, ``"hub": true`` of a repeater hub, and
``"grid": {"dims": [..], "wrap": bool}`` of a mesh or torus.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

from knotless.base.errors import FabricError
from knotless.base.files import read_bytes
from knotless.base.memory import Cost, refuse_beyond
from knotless.base.suggestions import suggestion
from knotless.topologies.fabric import (
    DEFAULT_DELAY_US,
    DEFAULT_RATE_MBPS,
    Fabric,
    Grid,
    Host,
    Link,
    Switch,
)
from knotless.topologies.formats.cable_list import from_cable_list
from knotless.topologies.formats.cable_list import looks_like as looks_like_cable_list
from knotless.topologies.formats.graph_json import from_graph_json, is_graph
from knotless.topologies.formats.graphml import from_graphml
from knotless.topologies.formats.ibnetdiscover import from_ibnetdiscover
from knotless.topologies.formats.ibnetdiscover import looks_like as looks_like_ibnetdiscover
from knotless.topologies.spec import built_of_name, with_family_of, with_family_of_name
from knotless.topologies.validate import validate

MAX_FILE_BYTES = 256 * 1024 * 1024


SUFFIXES = (
    *(".json", ".cyjs", ".graphml", ".xml", ".ibnetdiscover", ".txt", ".gml", ".yaml", ".yml"),
    ".csv",
)
_KNOWN = (
    "known are knotless's JSON, GraphML, node-link JSON of NetworkX, JSON of Cytoscape, CSV of"
    " cables, topologies of containerlab, output of ibnetdiscover"
)
_HEAD = 4096
_JSON = re.compile(r"\s*(\{|\[\s*\{)")  # a line of ibnetdiscover may begin with [1]
_CONTAINERLAB = re.compile(r"^topology\s*:", re.MULTILINE)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_OTHERS = {
    "SNDlib's native format": re.compile(r"\A\?SNDlib"),
    "GML": re.compile(r"^\s*graph\s*\[", re.MULTILINE),
    "DOT of Graphviz": re.compile(r"\A(strict\s+)?(di)?graph\b[^{\n]*\{"),
    "a configuration of EOS": re.compile(
        r"^! (?:device: \S+ \([^)\n]*EOS|Command: show running-config)", re.MULTILINE
    ),
    "a configuration of FRR": re.compile(r"^frr (version|defaults)\s", re.MULTILINE),
    "a configuration of NX-OS": re.compile(r"^!Command: show running-config", re.MULTILINE),
    "a configuration of Junos": re.compile(r"^set (system|interfaces) \S|^system \{", re.MULTILINE),
    "rules of Open vSwitch": re.compile(r"^\s*cookie=0x[0-9a-f]+,.*\bactions=", re.MULTILINE),
    "YAML": re.compile(r"\A(---|\w+:(\s|\Z))"),
}
"""Formats that are not read, by their beginning."""
_OTHER_JSON = {
    "a list of cables of Batfish (layer 1 topology)": re.compile(r'"edges"[^"]*"node1"'),
    "LLDP neighbours (lldpctl)": re.compile(r'\A\s*\{\s*"lldp"'),
    "a database of SONiC": re.compile(r'"(DEVICE_METADATA|PORT|[A-Z_]+_TABLE:[^"]+)"\s*:'),
}
"""Formats of JSON that are not read here; ``knotless check`` reads them."""
_FAULTS = ("jitter_us", "loss")
_LINE = ("rate_mbps", "delay_us", *_FAULTS)


def looks_like_file(text: str) -> bool:
    """Tell whether ``text`` names a file: it has a '/' or a known suffix, which no spec has."""
    return "/" in text or text.lower().endswith(SUFFIXES)


def read(path: str | Path) -> Fabric:
    """Return the fabric that the file at ``path`` describes, validated.

    The first character determines the format: ``{`` or ``[`` is JSON (a graph of NetworkX or
    Cytoscape, by its keys), ``<`` is GraphML. Else a line ``topology:`` makes it a file of
    containerlab, the names of columns in the first line a list of cables, a line of ibnetdiscover
    its output. Except in our own JSON the file's name becomes the fabric's name, and notes tell
    what has not been read.

    Raises
    ------
    FabricError
        The file cannot be read, has none of these formats, or its fabric is inconsistent.

    """
    file = Path(path)
    data = read_bytes(file, FabricError, MAX_FILE_BYTES)
    try:
        refuse_beyond("this fabric", Cost.FABRIC_FILE.bytes_for(len(data)), FabricError)
        return _of_any_kind(data, file)
    except FabricError as error:
        raise error.within(str(path)) from None


def _of_any_kind(data: bytes, file: Path) -> Fabric:
    name = "".join(c if c.isprintable() else "?" for c in file.stem)[:200]
    if _is_xml(data):  # which tells its own encoding
        return with_family_of_name(from_graphml(data, name))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FabricError("cannot be read: not UTF-8 text") from None
    if _JSON.match(text) or file.suffix.lower() in (".json", ".cyjs"):
        value = _json_value(text)
        if is_graph(value):
            return with_family_of_name(from_graph_json(value, name))
        for kind, sign in _OTHER_JSON.items():
            if sign.search(text[:_HEAD]) and not (isinstance(value, dict) and "switches" in value):
                raise _not_known(f", it looks like {kind}")
        return from_json(value)
    if _CONTAINERLAB.search(text):
        # PyYAML, which Mininet's interpreter may lack
        from knotless.topologies.formats.containerlab import from_containerlab

        return with_family_of_name(from_containerlab(text, name))
    if looks_like_ibnetdiscover(text):
        return with_family_of_name(from_ibnetdiscover(text, name))
    if file.suffix.lower() == ".csv" or looks_like_cable_list(text):
        return with_family_of_name(from_cable_list(text, name, _devices_beside(file)))
    start = text[:_HEAD].lstrip()
    looks = (f", it looks like {kind}" for kind, first in _OTHERS.items() if first.search(start))
    raise _not_known(next(looks, ""))


def _not_known(looks: str) -> FabricError:
    return FabricError(f"format not known{looks}; {_KNOWN}")


def _devices_beside(file: Path) -> str:
    """Return the list of devices that a testbed of SONiC has beside its list of links, or ""."""
    devices = file.with_name(file.name.replace("_links.csv", "_devices.csv"))
    if devices == file or not devices.is_file():
        return ""
    try:
        return read_bytes(devices, FabricError, MAX_FILE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FabricError(f"{devices.name}: cannot be read: not UTF-8 text") from None


def _is_xml(data: bytes) -> bool:
    """Tell whether the first character is ``<``, in an encoding that expat detects."""
    if data.startswith(_UTF16):
        return data[:_HEAD].decode("utf-16", "replace").lstrip()[:1] == "<"
    return data[:_HEAD].removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"<"


def from_text(text: str) -> Fabric:
    """Return the validated fabric of the JSON ``text``; raises FabricError if it is invalid."""
    return from_json(_json_value(text))


def _json_value(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        raise FabricError("not a fabric: nested too deeply") from None
    except ValueError as error:
        raise FabricError(f"not JSON: {error}") from None


def to_text(fabric: Fabric) -> str:
    """Return a fabric as JSON text, ending in a newline.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> fabric = load("mesh,2,2")
    >>> from_text(to_text(fabric)) == fabric
    True

    """
    return json.dumps(to_json(fabric), indent=1) + "\n"


def to_json(fabric: Fabric) -> dict[str, object]:
    """Return ``fabric`` as a value for :func:`json.dumps`."""
    obj: dict[str, object] = {
        "name": fabric.name,
        "switches": [_switch_values(switch) for switch in fabric.switches],
        "hosts": [_host_values(host) for host in fabric.hosts],
        "links": [_without_defaults(vars(link)) for link in fabric.links],
    }
    if fabric.grid is not None:
        obj["grid"] = {"dims": list(fabric.grid.dims), "wrap": fabric.grid.wrap}
    return obj


def from_json(obj: object, *, united: bool = False) -> Fabric:
    """Return the validated fabric of a JSON value; raises FabricError if it is invalid.

    It has a family if :func:`knotless.topologies.spec.with_family_of_name` finds one. ``united`` is
    as for :func:`knotless.topologies.validate.validate`.

    Switches are sorted by dpid, so that the order of the list does not affect plans. Only the
    switches of a grid keep their order, because it determines their coordinates.
    """
    top = _Reader("fabric", obj, ("name", "switches", "hosts", "links", "grid"))
    name = top.text("name")
    if not name.isprintable() or not 1 <= len(name) <= 200:
        raise FabricError("fabric: name must be 1 to 200 printable characters")
    built = built_of_name(name)
    # Mostly the file is one that we have written, and nothing of it is to be checked.
    if built is not None and json.dumps(to_json(built)) == json.dumps(obj):
        return built
    switches = [_switch(f"switches[{i}]", item) for i, item in enumerate(top.items("switches"))]
    if top.values.get("grid") is None:
        switches.sort(key=lambda switch: switch.dpid)
    fabric = Fabric(
        name,
        tuple(switches),
        tuple(_host(f"hosts[{i}]", item) for i, item in enumerate(top.items("hosts"))),
        tuple(_link(f"links[{i}]", item) for i, item in enumerate(top.items("links"))),
        _grid(top.values["grid"]) if top.values.get("grid") is not None else None,
    )
    validate(fabric, united=united)
    return fabric if built is None else with_family_of(fabric, built)


def _switch_values(switch: Switch) -> dict[str, object]:
    values = dict(vars(switch))
    if not switch.hub:
        del values["hub"]
    return values


def _host_values(host: Host) -> dict[str, object]:
    values = _without_defaults(vars(host))
    if not host.ip_invented:
        del values["ip_invented"]
    if host.server is None:
        del values["server"]
    return values


def _without_defaults(values: Mapping[str, object]) -> dict[str, object]:
    """Return the values of a link without the ones by which it does nothing to frames."""
    return {key: value for key, value in values.items() if value or key not in _FAULTS}


def _switch(where: str, obj: object) -> Switch:
    item = _Reader(where, obj, ("name", "dpid", "hub"))
    hub = item.values.get("hub", False)
    if not isinstance(hub, bool):
        raise FabricError(f"{where}: hub must be true or false, not {_short(hub)}")
    return Switch(item.text("name"), item.whole("dpid"), hub)


def _host(where: str, obj: object) -> Host:
    keys = ("name", "mac", "ip", "switch", "port", *_LINE, "ip_invented", "server")
    item = _Reader(where, obj, keys)
    invented = item.values.get("ip_invented", False)
    if not isinstance(invented, bool):
        raise FabricError(f"{where}: ip_invented must be true or false, not {_short(invented)}")
    return Host(
        item.text("name"),
        item.text("mac").lower(),
        item.text("ip"),
        item.text("switch"),
        item.whole("port"),
        item.number("rate_mbps", DEFAULT_RATE_MBPS),
        item.number("delay_us", DEFAULT_DELAY_US),
        invented,
        item.text("server") if item.values.get("server") is not None else None,
        item.number("jitter_us", 0.0),
        item.number("loss", 0.0),
    )


def _link(where: str, obj: object) -> Link:
    item = _Reader(where, obj, ("a", "a_port", "b", "b_port", *_LINE))
    return Link(
        item.text("a"),
        item.whole("a_port"),
        item.text("b"),
        item.whole("b_port"),
        item.number("rate_mbps", DEFAULT_RATE_MBPS),
        item.number("delay_us", DEFAULT_DELAY_US),
        item.number("jitter_us", 0.0),
        item.number("loss", 0.0),
    )


def _grid(obj: object) -> Grid:
    item = _Reader("grid", obj, ("dims", "wrap"))
    dims = item.items("dims")
    if not all(isinstance(size, int) and not isinstance(size, bool) for size in dims):
        raise FabricError("grid: dims must be a list of whole numbers")
    wrap = item.need("wrap")
    if not isinstance(wrap, bool):
        raise FabricError(f"grid: wrap must be true or false, not {_short(wrap)}")
    return Grid(tuple(size for size in dims if isinstance(size, int)), wrap)


class _Reader:
    """A JSON object, its location for error messages, and its allowed keys."""

    def __init__(self, where: str, obj: object, keys: Iterable[str]) -> None:
        if not isinstance(obj, dict):
            raise FabricError(f"{where}: must be an object, not {_short(obj)}")
        allowed = list(keys)
        for key in obj:
            if key not in allowed:
                hint = suggestion(str(key), allowed)
                raise FabricError(f"{where}: unknown key {_short(key)}; {hint}")
        self.where = where
        self.values: dict[str, object] = obj

    def need(self, key: str) -> object:
        if key not in self.values:
            raise FabricError(f"{self.where}: {key} is missing")
        return self.values[key]

    def text(self, key: str) -> str:
        value = self.need(key)
        if not isinstance(value, str):
            raise FabricError(f"{self.where}: {key} must be text, not {_short(value)}")
        return value

    def whole(self, key: str) -> int:
        value = self.need(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise FabricError(f"{self.where}: {key} must be a whole number, not {_short(value)}")
        return value

    def number(self, key: str, default: float) -> float:
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FabricError(f"{self.where}: {key} must be a number, not {_short(value)}")
        try:
            return float(value)
        except OverflowError:
            raise FabricError(f"{self.where}: {key} is far too large") from None

    def items(self, key: str) -> list[object]:
        value = self.need(key)
        if not isinstance(value, list):
            raise FabricError(f"{self.where}: {key} must be a list, not {_short(value)}")
        return value


def _short(value: object) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    obj = dict(pairs)
    if len(obj) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise FabricError(f"not a fabric: key {_short(twice)} occurs twice in one object")
    return obj


def _no_constant(text: str) -> NoReturn:
    raise FabricError(f"not a fabric: {text} is not a number")
