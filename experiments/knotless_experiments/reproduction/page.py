"""The pages: an overview, one page for each paper, the stored runs, and all figures as CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from knotless.results import markdown
from knotless.results import plots as style
from knotless.results.spread import Spread
from knotless.results.stored import FOLDER as EVIDENCE
from knotless.results.stored import Stored, read
from knotless_experiments.reproduction import (
    expectations,
    irregular,
    left_out,
    one_value,
    sensitivity,
)
from knotless_experiments.reproduction.claim import Claim, Paper, Section, shown
from knotless_experiments.reproduction.claims import claims, headlines, papers
from knotless_experiments.reproduction.headlines import (
    PLACES,
    claim_of,
    judged,
    measured,
)
from knotless_experiments.reproduction.verdicts import (
    DATE,
    DIRECTION,
    MOST,
    NOT_ATTEMPTED,
    NOT_REPRODUCED,
    RULE,
    VERDICTS,
    effect,
    verdict,
    verdict_before,
)

NEARLY_NOTHING = 0.02
NOWHERE = "-"
"""Shown where a figure does not exist."""
OVERVIEW = PurePosixPath("reproduction.md")
FOLDER = "reproduction"
"""The folder of all pages but the first, beside it."""


def printed(claim: Claim) -> str:
    """Return the paper's figure, or its words, with its mark."""
    if isinstance(claim.theirs, str):
        limits = "" if claim.agrees is None else f": {claim.agrees}"
        return f"{claim.theirs}{limits}"
    theirs = f"{claim.theirs:.{claim.digits}f}"
    return f"{theirs} ({claim.mark})" if claim.mark else theirs


def over(spread: Spread | None, theirs: float | str) -> str:
    """Return our figure divided by the paper's; words and nearly nothing have no ratio."""
    if spread is None or isinstance(theirs, str) or theirs < NEARLY_NOTHING:
        return NOWHERE
    return f"{spread.mean / theirs:.2f}"


def part(claim: Claim, spread: Spread | None) -> str:
    """Return our effect as a part of the paper's, with its 95 % interval if there are repeats."""
    ours = effect(claim, spread)
    if ours is None:
        return NOWHERE
    if spread is None or not spread.half_width:
        return f"{ours.mean:.2f}"
    return f"{ours.mean:.2f} ({ours.low:.2f} to {ours.high:.2f})"


def overview(stored: Stored) -> Iterator[str]:
    """Yield the first page, line by line."""
    yield "# The papers' figures compared with ours"
    yield ""
    yield "Compare the figures of five papers with ours, or repeat an experiment and add its run:"
    yield ""
    yield "    knotless run paths --quick"
    yield "    knotless reproduction results/paths-TIME-ID"
    yield ""
    yield f"| paper | headline claim | paper | {' | '.join(PLACES)} | effect | verdict |"
    yield "|---|---|---|" + "---|" * (len(PLACES) + 2)
    for headline in headlines():
        claim = claim_of(headline)
        link = f"[{headline.paper}]({FOLDER}/{headline.paper}.md)"
        if claim is None:
            yield f"| {link} | {headline.words} | - | - | - | - | - | **{NOT_ATTEMPTED}** |"
            continue
        spreads = measured(stored, claim)
        spread = judged(spreads)
        says = verdict(claim, spread)
        ours = [
            f"{each.mean:.{claim.digits}f}" if (each := spreads.get(on)) else NOWHERE
            for on in PLACES
        ]
        cells = [link, headline.words, printed(claim), *ours, part(claim, spread), f"**{says}**"]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield RULE
    yield ""
    yield (
        "Verdicts on all figures that the papers print. They were known when the claims were "
        f"written; others were [expected in advance]({FOLDER}/expectations.md):"
    )
    yield ""
    yield from _counted(stored)
    yield ""
    count = len([*_changed(stored)])
    yield (
        f"The rule's upper end is new: [{count} verdicts]({FOLDER}/changed.md) are "
        f"*{NOT_REPRODUCED}* that would be *{DIRECTION}* without it."
    )
    yield ""
    yield (
        f"[All figures as CSV]({FOLDER}/figures.csv) · [the stored runs, what was left out, and "
        f"which verdicts rest on one value]({FOLDER}/runs.md) · [settings that were chosen]"
        f"({FOLDER}/fitted.md)"
    )
    yield ""
    yield from (
        f"- [{paper.number}]({FOLDER}/{paper.number}.md): {paper.title}" for paper in papers()
    )
    yield ""
    yield (
        "The papers' machines are from 1999 to 2016. Their absolute times cannot be repeated, so "
        "most figures are ratios. `knotless reproduction` writes these pages and computes all our "
        "figures from the [stored runs](../experiments)."
    )


def _counted(stored: Stored) -> Iterator[str]:
    """Yield the table of verdicts on all printed figures, by paper."""
    yield f"| paper | {' | '.join(VERDICTS)} |"
    yield "|---|" + "---|" * len(VERDICTS)
    for paper in papers():
        says = Counter(
            verdict(claim, judged(measured(stored, claim)))
            for claim in paper.claims
            if not isinstance(claim.theirs, str)
        )
        yield f"| {paper.number} | {' | '.join(str(says[name]) for name in VERDICTS)} |"


def _changed(stored: Stored) -> Iterator[tuple[Claim, Spread | None]]:
    """Yield the figures whose verdict the last change of the rule has changed."""
    for claim in claims():
        spread = judged(measured(stored, claim))
        if verdict(claim, spread) != verdict_before(claim, spread):
            yield claim, spread


def changed_page(stored: Stored) -> Iterator[str]:
    """Yield the page of the verdicts that the last change of the rule has changed."""
    yield "# Verdicts that a rule has changed"
    yield ""
    yield (
        f"Until {DATE} a figure was *{DIRECTION}* however much larger its effect was than the "
        f"paper's. Since then it is *{NOT_REPRODUCED}* from {MOST:g} times on: 'no effect' would "
        "be as near to the paper's figure as ours is. The rule was changed before any run was made "
        "again, and for all figures:"
    )
    yield ""
    yield "| paper | where | what | paper | ours | effect |"
    yield "|---|---|---|---|---|---|"
    for claim, spread in _changed(stored):
        cells = [f"[{claim.paper}]({claim.paper}.md)", claim.place, claim.what, printed(claim)]
        yield f"| {' | '.join([*cells, shown(spread, claim.digits), part(claim, spread)])} |"


def paper_page(stored: Stored, paper: Paper) -> Iterator[str]:
    """Yield the page of a paper, line by line."""
    yield f"# {paper.number}: {paper.title}"
    yield ""
    yield (
        "[Overview](../reproduction.md). A figure is the mean of the valid runs, with minimum, "
        "maximum and number of runs. Simulated runs have several seeds where the seed matters, "
        "else one; without randomness, repeats are equal. 'Ours / theirs', the effect (with its "
        "95 % interval where there are repeats) and the verdict are those of the emulated figure "
        "if there is one, else of the simulated one, else of that of path analysis; the overview "
        "has the rule. The paper's words stay words. *Fitted*: a setting of ours was chosen so "
        "that this figure comes out ([what depends on chosen settings](fitted.md)). *Inferred*: "
        "derived from what the paper prints."
    )
    for section in paper.sections:
        yield ""
        yield f"## {section.title}"
        yield from _section(stored, section)


def _section(stored: Stored, section: Section) -> Iterator[str]:
    for note in section.notes:
        yield ""
        yield note
    for plot in section.plots:
        yield ""
        yield f"![{plot.caption}](images/{plot.name}.svg)"
        yield ""
        yield plot.caption
    if section.claims:
        places = [on for on in PLACES if any(on in claim.places for claim in section.claims)]
        yield ""
        yield f"| where | what | paper | {' | '.join(places)} | ours / theirs | effect | verdict |"
        yield "|---|---|---|" + "---|" * (len(places) + 3)
        reasons: dict[str, list[str]] = {}
        for claim in section.claims:
            yield _line(stored, claim, places)
            if claim.why:
                reasons.setdefault(claim.why, []).append(claim.place)
        yield ""
        for why, where in reasons.items():
            place = "; ".join(dict.fromkeys(where))
            yield why if len(reasons) == 1 else f"- {place}: {why}"
    if section.commands:
        yield ""
        yield "Repeat it:"
        yield ""
        yield from (f"    {command}" for command in section.commands)
    if section.missing:
        yield ""
        yield from (f"- {sentence}" for sentence in section.missing)


def _line(stored: Stored, claim: Claim, places: Sequence[str]) -> str:
    spreads = measured(stored, claim)
    spread = judged(spreads)
    cells = [claim.place, claim.what, printed(claim)]
    cells += [shown(spreads[on], claim.digits) if on in spreads else NOWHERE for on in places]
    says = verdict(claim, spread) if claim.places else ""
    cells += [over(spread, claim.theirs), part(claim, spread), says or NOWHERE]
    return f"| {' | '.join(cells)} |"


def table(stored: Stored) -> str:
    """Return all figures as CSV, with full precision."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    measures = ("mean", "least", "most", "count")
    head = ["paper", "where", "what", "printed", "mark"]
    head += [f"{on}_{name}" for on in PLACES for name in measures]
    writer.writerow([*head, "effect", "effect_low", "effect_high", "verdict", "one_value"])
    for claim in claims():
        spreads = measured(stored, claim)
        theirs = claim.theirs if isinstance(claim.theirs, str) else f"{claim.theirs:.6g}"
        cells = [claim.paper, claim.place, claim.what.replace("\\*", "*"), theirs, claim.mark]
        for on in PLACES:
            spread = spreads.get(on)
            if spread is None:
                cells += [""] * len(measures)
            else:
                cells += [f"{getattr(spread, name):.6g}" for name in measures]
        spread = judged(spreads)
        ours = effect(claim, spread)
        cells += [f"{each:.6g}" for each in (ours.mean, ours.low, ours.high)] if ours else [""] * 3
        writer.writerow([*cells, verdict(claim, spread), one_value.reason(stored, claim)])
    return sink.getvalue()


def images(stored: Stored) -> Iterator[tuple[str, str]]:
    """Yield the file name and the SVG text of every plot."""
    import matplotlib as mpl

    for paper in papers():
        for section in paper.sections:
            for plot in section.plots:
                with mpl.rc_context(style.STYLE):
                    figure = plot.draw(paper, stored)
                    yield f"{plot.name}.svg", style.svg_text(figure)


def pages(stored: Stored, evidence: Path = EVIDENCE) -> Mapping[PurePosixPath, str]:
    """Return all pages by their path, relative to the folder of the first one.

    ``evidence`` is the folder with the runs of chosen settings and the random graphs.
    """
    folder = PurePosixPath(FOLDER)
    texts = {OVERVIEW: markdown.page(overview(stored))}
    for paper in papers():
        texts[folder / f"{paper.number}.md"] = markdown.page(paper_page(stored, paper))
    texts[folder / "changed.md"] = markdown.page(changed_page(stored))
    chosen = [
        *sensitivity.lines(read(evidence / sensitivity.RUNS).runs),
        "",
        *irregular.lines(irregular.stored(evidence)),
    ]
    texts[folder / "fitted.md"] = markdown.page(chosen)
    texts[folder / "expectations.md"] = markdown.page(expectations.lines(stored))
    texts[folder / "runs.md"] = markdown.page(left_out.lines(stored, evidence))
    texts[folder / "figures.csv"] = table(stored)
    for name, svg in images(stored):
        texts[folder / "images" / name] = svg
    return texts
