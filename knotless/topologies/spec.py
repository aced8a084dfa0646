"""Fabric specs: ``FAMILY,SIZE..,option=VALUE..``, as in ``mn --topo``."""

from __future__ import annotations

import math
import re

from knotless.base.errors import SpecError
from knotless.base.memory import collector_paused
from knotless.base.suggestions import suggestion
from knotless.topologies.fabric import DEFAULT_RATE_MBPS, Fabric, FamilyMember
from knotless.topologies.family import Family, Request
from knotless.topologies.numbering import MAX_HOSTS_PER_SWITCH
from knotless.topologies.registry import families
from knotless.topologies.validate import MAX_DELAY_US, MAX_RATE_MBPS, validate

_WHOLE = re.compile(r"-?[0-9]{1,9}")
_NUMBER = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,9})?(e[+-]?[0-9]{1,2})?", re.IGNORECASE)
_LONGEST = 200
WITHOUT = " without "
"""What follows in a name is what a fabric lacks."""


@collector_paused()
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
    built = built_of_name(fabric.name)
    return fabric if built is None else with_family_of(fabric, built)


def built_of_name(name: str) -> Fabric | None:
    """Return the fabric whose spec is the ``name`` of another; None if it is no spec."""
    try:
        return build(name)
    except SpecError:
        return None


def with_family_of(fabric: Fabric, built: Fabric) -> Fabric:
    """Return a ``fabric`` with the family of the one ``built`` of its name, if they are alike."""
    return fabric.with_family(built.family) if _bare(built) == _bare(fabric) else fabric


def member_and_numbers(fabric: Fabric) -> tuple[FamilyMember, list[int]] | None:
    """Return the family of a fabric, and the number of each switch in the family, or None.

    A fabric whose name begins with a spec, and that has no other switches and links, is damaged: it
    may lack some of them, and have any hosts.
    """
    if fabric.family is not None:
        return fabric.family, list(range(len(fabric.switches)))
    built = built_of_name(fabric.name.partition(WITHOUT)[0])
    if built is None:
        return None
    links = {(link.a, link.a_port, link.b, link.b_port) for link in built.links}
    links |= {(b, b_port, a, a_port) for a, a_port, b, b_port in links}
    ours = {(link.a, link.a_port, link.b, link.b_port) for link in fabric.links}
    if not ours <= links or not fabric.switch_index.keys() <= built.switch_index.keys():
        return None
    assert built.family is not None  # noqa: S101 - build() has set it
    return built.family, [built.switch_index[switch.name] for switch in fabric.switches]


def _bare(fabric: Fabric) -> tuple[object, ...]:
    """Return the switches, host ports and links, without rates, delays and addresses."""
    hosts = [(host.name, host.switch, host.port) for host in fabric.hosts]
    links = [
        (link.a, link.a_port, link.b, link.b_port, link.jitter_us, link.loss)
        for link in fabric.links
    ]
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
    >>> build("Torus,4,4").name
    'torus,4,4'

    """
    if len(spec) > _LONGEST:
        raise SpecError(f"a fabric spec has at most {_LONGEST} characters, not {len(spec)}")
    if not spec.isprintable() or not spec:
        raise SpecError(f"{spec!r} is not a fabric spec; write one as torus,4,4")
    name, *parts = (part.strip() for part in spec.split(","))
    family = _family(spec, name)
    name = family.name
    sizes, given = _parts(spec, family, parts)
    own = {
        key: _whole(spec, key, given.get(key, str(value))) for key, value in family.options.items()
    }
    lists = {key: _list(spec, key, given.get(key, "1"), len(sizes)) for key in family.lists}
    default_hosts = family.default_hosts(sizes, own)
    word = family.hosts_option
    hosts = _whole(spec, word, given[word]) if word in given else default_hosts
    if word in given and not 1 <= hosts <= MAX_HOSTS_PER_SWITCH:
        raise SpecError(f"{spec}: {word} must be 1 to {MAX_HOSTS_PER_SWITCH} a switch, not {hosts}")
    rate_mbps = _number(spec, "rate", given.get("rate", str(DEFAULT_RATE_MBPS)))
    if not 0 < rate_mbps <= MAX_RATE_MBPS:
        raise SpecError(
            f"{spec}: rate must be above 0 and at most {MAX_RATE_MBPS:.0f} Mbit/s,"
            f" not {rate_mbps:g}"
        )
    delay_us = _number(spec, "delay", given.get("delay", str(family.default_delay_us)))
    if not 0 <= delay_us <= MAX_DELAY_US:
        raise SpecError(f"{spec}: delay must be 0 to {MAX_DELAY_US:.0f} us, not {delay_us:g}")
    canonical = [name, *_sizes_text(family, sizes)]
    canonical += [f"{key}={own[key]}" for key in family.required if key != word]
    canonical += [f"{word}={hosts}"] if hosts != default_hosts or word in family.required else []
    canonical += [
        key if key in family.flags else f"{key}={value}"
        for key, value in own.items()
        if value != family.options[key] and key not in family.required
    ]
    canonical += [
        f"{key}={'x'.join(map(str, values if len({*values}) > 1 else values[:1]))}"
        for key, values in lists.items()
        if {*values} != {1}
    ]
    canonical += [f"rate={rate_mbps:g}"] if rate_mbps != DEFAULT_RATE_MBPS else []
    canonical += [f"delay={delay_us:g}"] if delay_us != family.default_delay_us else []
    return family, Request(",".join(canonical), sizes, hosts, rate_mbps, delay_us, own, lists)


def _sizes_text(family: Family, sizes: tuple[int, ...]) -> list[str]:
    if family.shape is None or not sizes:
        return list(map(str, sizes))
    text = "x".join(map(str, sizes))
    return [f"{family.shape}={text}" if family.shape else text]


def _family(spec: str, name: str) -> Family:
    by_name = families()
    if name.lower() in by_name:
        return by_name[name.lower()]
    if name[:1].isdigit():
        raise SpecError(
            f"{spec}: sizes follow the name of a family, as in torus,4,4; families are"
            f" {', '.join(by_name)}"
        )
    raise SpecError(f"{spec}: there is no family {name!r}; {suggestion(name, by_name)}")


def _parts(spec: str, family: Family, parts: list[str]) -> tuple[tuple[int, ...], dict[str, str]]:
    """Return the sizes, and the text of each option that is given."""
    flags = [part for part in parts if part in family.flags]
    words = [part for part in parts if "=" not in part and part not in family.flags]
    named = [part for part in parts if "=" in part]
    given = _options(spec, family, [*named, *(f"{flag}=1" for flag in flags)])
    if family.shape is not None:
        shapes = [*words, *([given.pop(family.shape)] if family.shape in given else [])]
        if len(shapes) != 1:
            raise SpecError(f"{spec}: the sizes are missing or given twice; write {family.usage}")
        words = shapes[0].split("x")
    sizes = tuple(_whole(spec, "size", word) for word in words)
    _check_sizes(spec, family, sizes)
    missing = [key for key in family.required if key not in given]
    if missing:
        raise SpecError(f"{spec}: {', '.join(missing)} must be given: {family.usage}")
    return sizes, given


def _list(spec: str, key: str, text: str, count: int) -> tuple[int, ...]:
    """Return the numbers of an option that has one for each size, or one for all."""
    numbers = tuple(_whole(spec, key, word) for word in text.split("x"))
    if min(numbers) < 1:
        raise SpecError(f"{spec}: {key} must be at least 1, not {min(numbers)}")
    if len(numbers) not in (1, count):
        raise SpecError(f"{spec}: {key} must have {count} numbers or one, not {len(numbers)}")
    return numbers * count if len(numbers) == 1 else numbers


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
    allowed = [*([family.hosts_option] if family.hosts else []), "rate", "delay", *family.options]
    allowed += [*family.lists, *([family.shape] if family.shape else [])]
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
