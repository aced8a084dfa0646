"""The page of routing engines: a picture, the rule, the use and the cost of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

from docs.generator import drawings as draw
from knotless.routing.engine import Engine, engines
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.verification.advice import Advice, advise
from knotless.verification.comparison import ALL, compare

FABRICS = (
    "mesh,4,4",
    "torus,4,4",
    "torus,4,4,4",
    "fattree,2,4,2",
    "clos,4",
    "lsft,3",
    "irregular-a",
    "random,32",
    "dragonfly,a=4,h=2,p=2",
    "hyperx,S=4x4",
    "slimfly,5",
)
"""The fabrics on which every engine is compared."""
PICTURES: Mapping[str, tuple[str, str]] = {
    "cube": ("cube,4x4x8,twist", "h43"),
    "dimwar": ("hyperx,S=4x4", "h11"),
    "dor": ("torus,5,5", "h13"),
    "dragonfly": ("dragonfly,a=3,h=1,p=1", "h5"),
    "dragonfly-valiant": ("dragonfly,a=3,h=1,p=1", "h5"),
    "dragonflyplus": ("dragonflyplus,l=2,s=2,h=1,p=1", "h3"),
    "dragonflyplus-valiant": ("dragonflyplus,l=2,s=2,h=1,p=1", "h3"),
    "fattree": ("fattree,2,4,2", "h7"),
    "hyperx": ("hyperx,S=4x4", "h11"),
    "lsft": ("lsft,2", "h7"),
    "smodk": ("fattree,2,4,2", "h7"),
    "ugal": ("dragonfly,a=3,h=1,p=1", "h5"),
    "valiant": ("polarfly,3,hosts=1", "h9"),
}
"""The fabric and the destination of the picture of an engine."""
USUAL_PICTURE = ("mesh,4,4", "h11")

HEAD = """# Routing engines

An engine chooses the path of every pair of hosts. Choose one with `--engine`, let `auto` take the
default of the fabric's family, or ask which is best:

```sh run
knotless advise torus,4,4
```

[Choosing an engine](../tutorials/choosing-an-engine.md) explains these figures step by step. The
engines are deterministic: the same fabric and options give the same paths. All except `minimal`,
and `dor` on a torus with a single virtual channel, give plans that cannot deadlock, and
[`check`](verdicts.md) proves it for each plan from the rules. [`adaptive` and
`ugal`](../adaptive-routing.md) have no rules: they are proven by `plan`, and simulated.

A picture shows all paths to one host; the colour of a channel is the virtual channel on which most
of them use it: {colours}. The tables are computed whenever this page is built:

- **load**: paths on the most loaded channel. *bound*: the mean load of a channel if all pairs took
  shortest paths, which no engine can get below.
- **mean**, **max**: switches on a path.
- **VCs**: virtual channels, each of which needs a lossless priority. **VLANs**: needed by
  switches that forward by VLAN and destination. **rules**: on all switches together.

## Which engine for which fabric

| fabric | advised | load | bound | VCs | with fewer VCs |
|---|---|---|---|---|---|
{advice}
"""


@cache
def advices() -> Mapping[str, Advice]:
    """Return the comparison of all engines on each fabric."""
    request = PlanRequest()
    fabrics = {spec: load(spec) for spec in FABRICS}
    return {
        spec: advise(fabric, list(compare(fabric, ALL, request)))
        for spec, fabric in fabrics.items()
    }


def page() -> str:
    """Return the page."""
    colours = ", ".join(f"{i} {name}" for i, name in enumerate(draw.COLOUR_NAMES))
    rows = "\n".join(_advice_row(spec, advice) for spec, advice in advices().items())
    head = HEAD.format(colours=colours, advice=rows)
    return "\n".join([head, *(line for engine in engines().values() for line in _section(engine))])


@cache
def _picture(name: str) -> tuple[str, int]:
    """Return the picture of an engine, and the number of virtual channels in it."""
    spec, host = PICTURES.get(name, USUAL_PICTURE)
    return draw.paths_to(spec, name, host)


DRAWINGS: Mapping[str, Callable[[], str]] = {
    f"explanation/images/{name}.svg": partial(lambda name: _picture(name)[0], name)
    for name in engines()
}


def _advice_row(spec: str, advice: Advice) -> str:
    best = _figures(advice, advice.engine or "")
    fewer = "; ".join(advice.cheaper)
    return (
        f"| `{spec}` | [{advice.engine}](#{advice.engine}) | {best['max_channel_load']} |"
        f" {best['load_bound']:.1f} | {best['vcs']} | {fewer} |"
    )


def _figures(advice: Advice, engine: str) -> Mapping[str, Any]:
    return next((row.summary or {} for row in advice.rows if row.engine == engine), {})


def _section(engine: Engine) -> Iterator[str]:
    spec, host = PICTURES.get(engine.name, USUAL_PICTURE)
    yield f"## {engine.name}\n"
    yield f"{engine.summary[0].upper()}{engine.summary[1:]}.\n"
    yield f"![Paths to {host} on {spec}](images/{engine.name}.svg)\n"
    vcs = _picture(engine.name)[1]
    many = f" on {vcs} virtual channels" if vcs > 1 else ""
    yield f"*All paths to {host} on `{spec}`{many}.*\n"
    yield f"**Rule.** {engine.rule}\n"
    yield f"**Why it cannot deadlock.** {engine.proof}\n"
    yield f"**Use it for.** {engine.use}\n"
    rows, refused = [], []
    for fabric, advice in advices().items():
        found = _figures(advice, engine.name)
        if found:
            rows.append(_cost_row(fabric, found))
        else:
            refused.append(f"`{fabric}`")
    yield "| fabric | load | bound | mean | max | VCs | VLANs | rules | deadlock |"
    yield "|---|---|---|---|---|---|---|---|---|"
    yield "\n".join(rows) + "\n"
    if refused:
        yield f"It does not route {', '.join(refused)}.\n"


def _cost_row(fabric: str, of: Mapping[str, Any]) -> str:
    verdict = "cannot" if of["safe"] else "**can**"
    return (
        f"| `{fabric}` | {of['max_channel_load']} | {of['load_bound']:.1f} |"
        f" {of['mean_switches']:.2f} | {of['max_switches']} | {of['vcs']} | {of['vlans']} |"
        f" {of.get('rules', 'none')} | {verdict} |"
    )
