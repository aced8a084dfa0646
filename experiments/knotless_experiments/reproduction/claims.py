"""The papers that are compared, by author and by number, and all their claims."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from knotless.results.stored import FOLDER
from knotless_experiments.reproduction import claims_file
from knotless_experiments.reproduction.claim import Claim, Headline, Paper


@cache
def papers() -> Sequence[Paper]:
    """Return all papers in the order of their numbers. Raises ClaimsError for a mistake in one."""
    files = FOLDER.glob(f"*/{claims_file.NAME}")
    return sorted(map(claims_file.read, files), key=lambda paper: paper.number)


def paper(name: str) -> Paper:
    """Return a paper by the name of its first author or by its number, such as ``004``."""
    for each in papers():
        if name in (each.author, each.number):
            return each
    names = ", ".join(f"{each.author} ({each.number})" for each in papers())
    raise claims_file.ClaimsError(f"paper {name[:40]!r}: there are {names}")


def claims() -> list[Claim]:
    """Return the claims of all papers, in order."""
    return [claim for each in papers() for claim in each.claims]


def headlines() -> list[Headline]:
    """Return the lines of the first page, in order."""
    return [headline for each in papers() for headline in each.headlines]
