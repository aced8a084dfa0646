"""Fabric specs: ``FAMILY,SIZE..,option=VALUE..``, as in ``mn --topo``."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from knotless.base.errors import SpecError
from knotless.base.suggestions import suggestion
from knotless.topologies.fabric import DEFAULT_RATE_MBPS, Fabric, FamilyMember
from knotless.topologies.family import Family, Request
from knotless.topologies.numbering import MAX_HOSTS_PER_SWITCH
from knotless.topologies.registry import families
from knotless.topologies.validate import MAX_DELAY_US, MAX_RATE_MBPS, validate

_WHOLE = re.compile(r"-?[0-9]{1,9}")
_NUMBER = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,9})?(e[+-]?[0-9]{1,2})?", re.IGNORECASE)
_LONGEST = 200


def build(spec: str) -> Fabric:
    """Return the fabric that ``spec`` describes.

    Every family has the options ``rate=MBPS`` and ``delay=US`` of all links. All except ``flat``
    and ``hub`` have ``hosts=K``: the hosts of each switch that has hosts (1 on grids; each other
    family has its own default).

    Parameters
    ----------
    spec : str
        ``FAMILY,SIZE..,option=VALUE..``, as in ``mn --topo``.

    Returns
    -------
    Fabric
        The fabric, validated. Its name is the canonical spec.

    Raises
    ------
    SpecError
        The message says what is wrong and what would be right.

    Examples
    --------
    >>> build("mesh,4,2, hosts=1, rate=1000").name
    'mesh,4,2,rate=1000'

    """
    family, request = parse(spec)
    fabric = family.build(request)
    validate(fabric)
    return fabric.with_family(
        FamilyMember(family.name, request.sizes, request.hosts, request.options)
    )


def with_family_of_name(fabric: Fabric) -> Fabric:
    """Return a ``fabric`` from a file with its family, if it has one.

    A fabric whose name is a spec belongs to the family of the spec if its switches, hosts and links
    equal those that the spec describes; rates, delays and addresses are ignored.
    """
    try:
        built = build(fabric.name)
    except SpecError:
        return fabric
    return fabric.with_family(built.family) if _bare(built) == _bare(fabric) else fabric


def _bare(fabric: Fabric) -> tuple[object, ...]:
    """Return the switches, host ports and links, without rates, delays and addresses."""
    hosts = [(host.name, host.switch, host.port) for host in fabric.hosts]
    links = [replace(link, rate_mbps=0.0, delay_us=0.0) for link in fabric.links]
    return fabric.switches, hosts, links


def parse(spec: str) -> tuple[Family, Request]:
    """Parse ``spec``; return its family and request, with all values checked.

    Parameters
    ----------
    spec : str
        As for :func:`build`.

    Returns
    -------
    family : Family
        The family of the first word.
    request : Request
        Sizes and options; options that are not given have the family's defaults.

    Raises
    ------
    SpecError
        There is no such family, or it has no such size or option.

    Examples
    --------
    >>> family, request = parse("mesh,4,2,hosts=2")
    >>> family.name, request.sizes, request.hosts, request.rate_mbps
    ('mesh', (4, 2), 2, 10.0)

    """
    if len(spec) > _LONGEST:
        raise SpecError(f"a fabric spec has at most {_LONGEST} characters, not {len(spec)}")
    if not spec.isprintable() or not spec:
        raise SpecError(f"{spec!r} is not a fabric spec; write one as torus,4,4")
    name, *parts = (part.strip() for part in spec.split(","))
    family = _family(spec, name)
    sizes = tuple(_whole(spec, "size", part) for part in parts if "=" not in part)
    _check_sizes(spec, family, sizes)
    given = _options(spec, family, [part for part in parts if "=" in part])
    default_hosts = family.default_hosts(sizes)
    hosts = _whole(spec, "hosts", given["hosts"]) if "hosts" in given else default_hosts
    if "hosts" in given and not 1 <= hosts <= MAX_HOSTS_PER_SWITCH:
        raise SpecError(f"{spec}: hosts must be 1 to {MAX_HOSTS_PER_SWITCH} a switch, not {hosts}")
    rate_mbps = _number(spec, "rate", given.get("rate", str(DEFAULT_RATE_MBPS)))
    if not 0 < rate_mbps <= MAX_RATE_MBPS:
        raise SpecError(
            f"{spec}: rate must be above 0 and at most {MAX_RATE_MBPS:.0f} Mbit/s,"
            f" not {rate_mbps:g}"
        )
    delay_us = _number(spec, "delay", given.get("delay", str(family.default_delay_us)))
    if not 0 <= delay_us <= MAX_DELAY_US:
        raise SpecError(f"{spec}: delay must be 0 to {MAX_DELAY_US:.0f} us, not {delay_us:g}")
    own = {
        key: _whole(spec, key, given.get(key, str(value))) for key, value in family.options.items()
    }
    canonical = [name, *map(str, sizes)]
    canonical += [f"hosts={hosts}"] if hosts != default_hosts else []
    canonical += [f"{key}={value}" for key, value in own.items() if value != family.options[key]]
    canonical += [f"rate={rate_mbps:g}"] if rate_mbps != DEFAULT_RATE_MBPS else []
    canonical += [f"delay={delay_us:g}"] if delay_us != family.default_delay_us else []
    return family, Request(",".join(canonical), sizes, hosts, rate_mbps, delay_us, own)


def _family(spec: str, name: str) -> Family:
    by_name = families()
    if name in by_name:
        return by_name[name]
    raise SpecError(f"{spec}: there is no family {name!r}; {suggestion(name, by_name)}")


def _check_sizes(spec: str, family: Family, sizes: tuple[int, ...]) -> None:
    least, most = family.sizes
    if not least <= len(sizes) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise SpecError(
            f"{spec}: {family.name} takes {wanted} sizes ({family.usage}), not {len(sizes)}"
        )
    for size in sizes:
        if size < 1:
            raise SpecError(f"{spec}: a size must be at least 1, not {size}")


def _options(spec: str, family: Family, parts: list[str]) -> dict[str, str]:
    allowed = [*(["hosts"] if family.hosts else []), "rate", "delay", *family.options]
    given: dict[str, str] = {}
    for part in parts:
        key, value = part.split("=", 1)
        if key not in allowed:
            raise SpecError(
                f"{spec}: {family.name} has no option {key!r}; it has {', '.join(allowed)}"
            )
        if key in given:
            raise SpecError(f"{spec}: option {key} is given twice")
        given[key] = value
    return given


def _whole(spec: str, what: str, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise SpecError(f"{spec}: {what} must be a whole number, not {text!r}")
    return int(text)


def _number(spec: str, what: str, text: str) -> float:
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise SpecError(f"{spec}: {what} must be a number, not {text!r}")
    return float(text)
