"""One packet, followed link by link: ``knotless check --pair``."""

from __future__ import annotations

import sys
from typing import NoReturn

from knotless.cli.answer import Answer, Headline, Several, Tone, print_answer
from knotless.cli.options import print_json
from knotless.verification.pair_paths import FollowedPair


def print_pair(pair: FollowedPair, *, as_json: bool) -> NoReturn:
    """Print the links of one packet; exit with status 1 unless it arrives."""
    if as_json:
        print_json(pair.as_json())
    else:
        word, rest = "not delivered", f", {pair.fate}"
        if pair.delivered:
            word, rest = "delivered", f"to {', '.join(pair.delivered)}"
            rest += ", more than once" if pair.twice else ""
        shown = []
        for link in pair.links:
            label = link[pair.label.lower()]
            likely = f"  {100 * link['probability']:.4g} %" if "probability" in link else ""
            named = f"  {pair.label} {label}" if label else ""
            shown.append(f"{link['link']}{named}{likely}")
        tone = Tone.GOOD if pair.ok else Tone.BAD
        headline = Headline(f"{pair.source} to {pair.destination}", word, rest, tone)
        print_answer(Answer(headline, why=[Several(shown, "links", len(shown))]))
    sys.exit(0 if pair.ok else 1)
