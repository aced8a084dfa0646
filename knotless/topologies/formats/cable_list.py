"""Fabrics from lists of cables as CSV: a line for each cable, with named columns.

::

    a,a_port,b,b_port,kind_b,rate_mbps
    leaf1,Ethernet48,spine1,Ethernet1,,100000
    leaf1,Ethernet1,gpu1,eth0,host,100000

The columns of both ends have one of the names in :data:`LAYOUTS`: ours, those that NetBox exports
and imports, those of the testbeds of SONiC, and those of edge lists. Capitals, spaces and
underscores in names do not matter; separators are commas, semicolons or tabs.

Devices are switches, unless ``kind_a`` or ``kind_b`` says ``host``, or the list of devices of a
testbed says that they are servers or testers. A host with several cables becomes one for each,
which are interfaces of one server. If there are no hosts, each switch gets one.

References
----------
NetBox, netbox/dcim/tables/cables.py and forms/bulk_import.py; sonic-net/sonic-mgmt,
docs/testbed/README.testbed.Config.md (``sonic_lab_links.csv``, ``sonic_lab_devices.csv``).

"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from knotless.base.errors import FabricError
from knotless.base.printable import listed
from knotless.topologies.fabric import DEFAULT_DELAY_US, DEFAULT_RATE_MBPS, Fabric
from knotless.topologies.formats.cabling import End, one_host_each, ports_of
from knotless.topologies.formats.node_names import valid_names
from knotless.topologies.partial_fabric import PartialHost, PartialLink, PartialSwitch, complete

LAYOUTS = (
    ("a", "a_port", "b", "b_port"),
    ("Device A", "Termination A", "Device B", "Termination B"),
    ("side_a_device", "side_a_name", "side_b_device", "side_b_name"),
    ("StartDevice", "StartPort", "EndDevice", "EndPort"),
    ("Source", "Source_Port", "Target", "Target_Port"),
)
"""The columns of a cable: the device and the port of each end. Those of ports may be left out."""
_MORE = {"rate_mbps", "BandWidth", "delay_us", "kind_a", "kind_b", "Status", "Type"}
_MORE |= {"side_a_type", "side_b_type"}
_DEVICES = ("Hostname", "Type")
_HOST_TYPE = re.compile(r"Server|Dev(Ixia|Snappi|Spirent)\w*", re.IGNORECASE)
"""Types of devices of a testbed of SONiC that send and receive: servers and testers."""
_OTHER_CABLES = {"endfeed": "power cables", "consoletype": "console cables"}
"""Columns of lists of a testbed that have no data links."""
_PANELS = ("frontport", "rearport")
_NAMED = 30


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


_PLAIN_LAYOUTS = tuple(tuple(map(_plain, layout)) for layout in LAYOUTS)
_PLAIN_MORE = {_plain(name) for name in _MORE}


@dataclass(frozen=True)
class _Cable:
    ends: tuple[End, End]
    where: str
    rate_mbps: float
    delay_us: float


def looks_like(text: str) -> bool:
    """Tell whether the first line of a text names columns of a list of cables or devices."""
    return any(True for _ in _headers(text))


def from_cable_list(text: str, name: str, devices: str = "") -> Fabric:
    """Return the fabric called ``name`` of a list of cables.

    ``devices`` is the text of the list of devices of a testbed of SONiC that is beside it.

    Raises
    ------
    FabricError
        The text is no list of cables, or its fabric is inconsistent; the message names the line.

    """
    notes: list[str] = []
    table = _table(text)
    kinds = _kinds_of_devices(devices) if devices else {}
    cables = [*_cables(table, kinds, notes)]
    if not cables:
        raise FabricError("the list has no cable between two devices")
    linked = dict.fromkeys(device for cable in cables for device, _ in cable.ends)
    if alone := [device for device in kinds if device not in linked and devices]:
        notes.append(f"devices without a cable are left out: {listed(alone, _NAMED)}")
    is_host = {device: kinds.get(device) == "host" for device in linked}
    if hosts := [device for device in linked if is_host[device]]:
        notes.append(f"these devices are hosts: {listed(hosts, _NAMED)}")
    else:
        notes.append("no column says which devices are hosts (kind_a, kind_b): all are switches")
    names, changed = valid_names(
        [[device] for device in linked], [*map("d{}".format, range(1, len(linked) + 1))]
    )
    return _fabric(name, cables, dict(zip(linked, names, strict=True)), is_host).with_notes(
        [*notes, *changed]
    )


def _fabric(
    name: str, cables: Sequence[_Cable], names: Mapping[str, str], is_host: Mapping[str, bool]
) -> Fabric:
    index = {device: i for i, device in enumerate(d for d in names if not is_host[d])}
    ports = ports_of([cable.ends for cable in cables])
    interfaces = Counter(device for cable in cables for device, _ in cable.ends)
    links: list[PartialLink] = []
    hosts: list[PartialHost] = []
    numbers: Counter[str] = Counter()
    for cable in cables:
        a, b = cable.ends
        if is_host[a[0]] and is_host[b[0]]:
            raise FabricError(f"{cable.where}: joins {a[0]!r} and {b[0]!r}, which are both hosts")
        if is_host[a[0]]:
            a, b = b, a
        line = (cable.rate_mbps, cable.delay_us)
        if not is_host[b[0]]:
            links.append(PartialLink(index[a[0]], index[b[0]], ports.get(a), ports.get(b), *line))
            continue
        numbers[b[0]] += 1
        server = names[b[0]] if interfaces[b[0]] > 1 else None
        called = names[b[0]] if server is None else f"{server}-{numbers[b[0]]}"
        hosts.append(
            PartialHost(
                called,
                index[a[0]],
                ports.get(a),
                rate_mbps=cable.rate_mbps,
                delay_us=cable.delay_us,
                server=server,
            )
        )
    switches = [names[device] for device in index]
    return complete(name, [*map(PartialSwitch, switches)], hosts or one_host_each(switches), links)


Row = tuple[int, dict[str, str]]
"""The number of a line, and its values by plain names of columns."""


def _headers(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield a separator and the names of columns that it gives, if those of both ends are there."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    for separator in ",;\t":
        names = [name.strip() for name in next(csv.reader([first], delimiter=separator), [])]
        plain = [*map(_plain, names)]
        if _layout(plain) or {*map(_plain, _DEVICES)} <= {*plain}:
            yield separator, names


def _layout(names: Sequence[str]) -> tuple[str, ...] | None:
    return next(
        (layout for layout in _PLAIN_LAYOUTS if layout[0] in names and layout[2] in names), None
    )


@dataclass(frozen=True)
class _Table:
    """The names of columns, as they are and plain, and the lines."""

    header: list[str]
    names: list[str]
    rows: list[Row]


def _table(text: str) -> _Table:
    """Return a text as a table; raises FabricError."""
    headers = next(_headers(text), None)
    if headers is None:
        layouts = "; ".join(",".join(layout) for layout in LAYOUTS)
        raise FabricError(f"no columns of a list of cables, which are one of: {layouts}")
    separator, header = headers
    names = [*map(_plain, header)]
    if twice := [name for name, count in Counter(filter(None, names)).items() if count > 1]:
        raise FabricError(f"line 1: the column {twice[0][:40]!r} is there twice")
    rows: list[Row] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        for values in reader:
            if not any(value.strip() for value in values):
                continue
            if len(values) > len(names):
                raise FabricError(
                    f"line {reader.line_num}: {len(values)} values, but {len(names)} columns"
                )
            rows.append(
                (
                    reader.line_num,
                    {name: value.strip() for name, value in zip(names, values, strict=False)},
                )
            )
    except csv.Error as error:
        raise FabricError(f"line {reader.line_num}: not CSV: {error}") from None
    return _Table(header, names, rows[1:])


def _kinds_of_devices(text: str) -> dict[str, str]:
    """Return the kind of each device of a testbed; raises FabricError."""
    table = _table(text)
    hostname, kind = map(_plain, _DEVICES)
    if hostname not in table.names or kind not in table.names:
        raise FabricError(f"the list of devices needs the columns {' and '.join(_DEVICES)}")
    return {
        row[hostname]: "host" if _HOST_TYPE.fullmatch(row.get(kind, "")) else "switch"
        for _, row in table.rows
        if row.get(hostname)
    }


def _cables(table: _Table, kinds: dict[str, str], notes: list[str]) -> Iterator[_Cable]:
    """Yield the cables; the kinds that columns name are added to ``kinds``."""
    layout = _layout(table.names)
    if layout is None:
        raise FabricError("a list of devices, without cables; give the list of links")
    for column, what in _OTHER_CABLES.items():
        if column in table.names:
            raise FabricError(f"a list of {what}, which are no links of a fabric")
    read = {*layout, *_PLAIN_MORE}
    if unread := [name for name in table.header if name and _plain(name) not in read]:
        notes.append(f"columns that are not read: {listed(unread, _NAMED)}")
    left_out: dict[str, list[str]] = {}
    used: dict[End, tuple[int, tuple[End, End]]] = {}
    for number, row in table.rows:
        where = f"line {number}"
        if reason := _left_out(where, row, layout):
            left_out.setdefault(reason, []).append(where)
            continue
        line = (
            _number(where, row, ("ratembps", "bandwidth"), DEFAULT_RATE_MBPS),
            _number(where, row, ("delayus",), DEFAULT_DELAY_US),
        )
        for ends in _pairs(where, row, layout):
            _add_kinds(where, row, ends, kinds)
            if _is_repeated(number, ends, used):
                left_out.setdefault("that were there before", []).append(where)
                continue
            yield _Cable(ends, where, *line)
    notes += [
        f"cables {reason} are left out: {listed(lines, _NAMED)}"
        for reason, lines in left_out.items()
    ]


def _left_out(where: str, row: Mapping[str, str], layout: Sequence[str]) -> str:
    """Return why a cable is no link of the fabric, empty if it is; raises FabricError."""
    for column in ("sideatype", "sidebtype"):
        kind = row.get(column, "").rpartition(".")[2]
        if kind in _PANELS:
            raise FabricError(
                f"{where}: a {kind} of a patch panel is not followed; list the interfaces at both"
                " ends"
            )
        if kind not in ("", "interface"):
            return f"of type {kind[:40]}"
    if row.get("type", "").lower() == "power":
        return "of type power"
    if row.get("status", "").lower() not in ("", "connected"):
        return f"with status {row['status'][:40]}"
    if not row.get(layout[0]) or not row.get(layout[2]):
        return "without a device at one end"
    return ""


def _pairs(where: str, row: Mapping[str, str], layout: Sequence[str]) -> Iterator[tuple[End, End]]:
    """Yield both ends of a cable; NetBox lists several devices at the end of a breakout."""
    a, b = (row[layout[place]].split(",") for place in (0, 2))
    if len(a) > 1 and len(b) > 1:
        raise FabricError(f"{where}: several devices at both ends; write a line for each link")
    ports = [row.get(layout[place], "") for place in (1, 3)]
    if len(a) == len(b) == 1 and not any("," in port for port in ports):
        yield (a[0], ports[0]), (b[0], ports[1])
        return
    for one, other in product(a, b):  # which ports belong together is not said
        yield (one.strip(), ""), (other.strip(), "")


def _is_repeated(
    number: int, ends: tuple[End, End], used: dict[End, tuple[int, tuple[End, End]]]
) -> bool:
    """Tell whether a cable was listed before; raises FabricError if only one of its ends was."""
    if ends[0] == ends[1]:
        raise FabricError(f"line {number}: both ends are {':'.join(ends[0])}")
    uses = [used.get(end) for end in ends if end[1]]
    for before, end in zip(uses, [end for end in ends if end[1]], strict=True):
        if before is None:
            used[end] = (number, ends)
        elif {*before[1]} != {*ends}:
            raise FabricError(
                f"line {number}: {':'.join(end)} has another cable already, in line {before[0]}"
            )
    return len(uses) == 2 and None not in uses


def _add_kinds(
    where: str, row: Mapping[str, str], ends: tuple[End, End], kinds: dict[str, str]
) -> None:
    for column, (device, _) in zip(("kinda", "kindb"), ends, strict=True):
        kind = row.get(column, "").lower()
        if kind not in ("", "switch", "host"):
            raise FabricError(
                f"{where}: kind_{column[-1]} must be switch or host, not {kind[:40]!r}"
            )
        if kind and kinds.setdefault(device, kind) != kind:
            raise FabricError(f"{where}: {device[:60]!r} is a {kind}, but a {kinds[device]} before")


def _number(where: str, row: Mapping[str, str], columns: Sequence[str], default: float) -> float:
    text = next((row[column] for column in columns if row.get(column)), "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FabricError(f"{where}: {text[:40]!r} is not a number")
    return value
