"""The reference of fabric specs: every family, with a drawing."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from docs.generator import drawings as draw
from docs.generator.commands import escaped
from knotless.base.errors import SpecError
from knotless.routing.engine import default_engine
from knotless.topologies import load
from knotless.topologies.family import Family
from knotless.topologies.registry import families

HEAD = """# Fabric specs

A spec is `FAMILY,SIZE..,OPTION=VALUE..`, as in `mn --topo`. Wherever a command expects SPEC, it
also accepts a [file](../fabric-files.md).

```sh run
knotless topology torus,4,4,hosts=2,rate=1000
```

| option | meaning | of |
|---|---|---|
| `hosts=K` | hosts on each switch that has hosts | every family except `flat`, `hub`, `rail` |
| `rate=MBPS` | rate of every link, Mbit/s | every family |
| `delay=US` | one-way delay of every link, microseconds | every family |

Switches are called `s1`, `s2`..; in grids they are numbered row by row, the first dimension
fastest, and in trees the switches with hosts come first. Hosts are called `h1`, `h2`.., switch by
switch. At each switch the ports to hosts come first, from port 1. In grids, the port to the next
and the port to the previous switch of each dimension follow; elsewhere, ports in the order of their
neighbours, unless the family says otherwise.

Dragonflies call the hosts of a switch `p`, as the literature does. Some families write sizes with
`x`, as `hyperx,S=4x4`. Dragonfly, HyperX, rail-optimized and other fabrics of clusters, with their
engines, are on [a page of their own](../cluster-fabrics.md).

## Families

This list is generated from the program.
"""
CHOSEN: Mapping[str, str] = {
    "clos": "clos,4",
    "clos3": "clos3,4",
    "cube": "cube,4x4x4",
    "dragonfly": "dragonfly,a=4,h=2,p=2",
    "dragonflyplus": "dragonflyplus,l=2,s=2,h=2,p=2",
    "fattree": "fattree,2,4,2",
    "fattree2": "fattree2,4",
    "fattree3": "fattree3,4",
    "flat": "flat,8",
    "fullmesh": "fullmesh,8",
    "hub": "hub,8",
    "hyperx": "hyperx,S=4x4",
    "mesh": "mesh,4,3",
    "mtree": "mtree,4,3",
    "polarfly": "polarfly,3",
    "rail": "rail,8,4,4,unit=4",
    "random": "random,12,hosts=1,seed=1",
    "ring": "ring,6",
    "slimfly": "slimfly,3,hosts=1",
    "torus": "torus,4,3",
}
"""Specs that are drawn of a family whose smallest fabric shows less of it."""
ENOUGH_SWITCHES, ENOUGH_HOSTS = 4, 6


def smallest(family: Family) -> str:
    """Return the spec of the first fabric, by size, in which there is something to see."""
    for size in range(2, 10):
        spec = ",".join([family.name, *[str(size)] * family.sizes[0]])
        try:
            fabric = load(spec)
        except SpecError:
            continue
        if len(fabric.switches) >= ENOUGH_SWITCHES or len(fabric.hosts) >= ENOUGH_HOSTS:
            return spec
    raise ValueError(f"no small {family.usage} was found: choose what is drawn of it")


EXAMPLES: Mapping[str, str] = {
    name: CHOSEN.get(name) or smallest(family) for name, family in families().items()
}
"""The spec that is drawn of each family."""
DRAWINGS: Mapping[str, Callable[[], str]] = {
    f"reference/images/{name}.svg": partial(draw.fabric, spec) for name, spec in EXAMPLES.items()
}


def page() -> str:
    """Return the page."""
    known = families()
    rows = ["| family | spec | |", "|---|---|---|"]
    rows += [
        f"| [{name}](#{name}) | `{family.usage}` | {escaped(family.summary)} |"
        for name, family in known.items()
    ]
    sections = (line for family in known.values() for line in _section(family))
    return "\n".join([HEAD, *rows, "", *sections])


def _section(family: Family) -> Iterator[str]:
    yield f"### {family.name}\n"
    yield f"`{family.usage}`: {escaped(family.summary)}.\n"
    yield from (f"{text}\n" for text in _documented(family))
    if family.lists:
        lists = ", ".join(f"`{key}=1`" for key in family.lists)
        yield f"Options with a number for each size, or one for all, and defaults: {lists}.\n"
    if family.options:
        required = [key for key in family.options if key in family.required]
        options = ", ".join(
            f"`{key}={value}`" for key, value in family.options.items() if key not in required
        )
        must = f"{', '.join(f'`{key}`' for key in family.required)} must be given. " * bool(
            required
        )
        yield f"{must}Own options, with their defaults: {options}.\n"
    spec = EXAMPLES[family.name]
    yield f"Default engine: [{default_engine(load(spec))}](../explanation/engines.md).\n"
    yield f"![The fabric {spec}](images/{family.name}.svg)\n"


def _documented(family: Family) -> Iterator[str]:
    """Yield the paragraphs of the builder's docstring: the rule, then where it comes from."""
    text = inspect.getdoc(family.build) or ""
    head, _, references = text.partition("References\n----------\n")
    for paragraph in re.split(r"\n\n", head.split("Raises\n------")[0].strip()):
        words = " ".join(paragraph.split())
        words = re.sub(r":\w+:`~?([\w.]+)`", r"`\1`", words.replace("``", "`"))
        if words:
            yield _sentence(words)
    if references:
        yield f"Source: {escaped(' '.join(references.split()))}"


def _sentence(words: str) -> str:
    """Turn 'Return the ring..' into 'The ring..'."""
    rest = words.removeprefix("Return ")
    return rest[0].upper() + rest[1:]
