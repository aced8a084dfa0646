"""The list of the stored runs from which figures on pages come."""

from __future__ import annotations

from knotless.results import stored

HEAD = """# Stored runs

Each file has the parameters, seed, versions, machine and results of one run. `knotless
reproduction` computes the figures on [the reproduction pages](../reproduction.md) from them.

| experiment | runs |
|---|---|
"""


def page() -> str:
    """Return the page: the files of each experiment."""
    kinds: dict[str, list[str]] = {}
    for path in stored.files():
        kinds.setdefault(path.stem.rsplit("-", 2)[0], []).append(path.name)
    rows = [
        f"| {kind} | {', '.join(f'[{i}]({name})' for i, name in enumerate(names, 1))} |"
        for kind, names in kinds.items()
    ]
    return HEAD + "\n".join(rows) + "\n"
