"""The sections of the page on Yamamoto et al."""

from __future__ import annotations

from knotless.experiments.reproduction.claim import Plot, Section
from knotless.experiments.reproduction.paper_003 import MESSAGES, PUSH
from knotless.experiments.reproduction.plots import paper_003 as draw

SECTIONS_003 = [
    Section(
        "Figure 7 and section 4: latency and bandwidth",
        MESSAGES,
        commands=(
            "knotless run pingpong --on simulation --fabric flat,2,rate=1300,delay=0.1",
            "sudo knotless run pingpong --fabric flat,2,rate=1300,delay=0.1 --slow-down 50 "
            "--repeats 5",
        ),
    ),
    Section(
        "Table 3: the stages of a push of 64 bytes",
        PUSH,
        plots=(
            Plot(
                "003-table-3",
                "When each stage begins (paper) or ends (ours), as a share of the time until the "
                "data is in the remote memory.",
                draw.table_3,
            ),
        ),
        commands=(
            "knotless run primitives --on simulation --fabric flat,2,rate=1300,delay=0.1",
            "sudo knotless run primitives --fabric flat,2,rate=1300,delay=0.1 --slow-down 50 "
            "--repeats 5",
        ),
    ),
    Section(
        "Not compared",
        missing=(
            "Figures 1 to 6, figure 8 and tables 1 and 2 are drawings, descriptions of boards and "
            "lists. For its primitives, see [messages.md](../messages.md).",
            "Its routing needs fewer virtual channels than the diameter of a fabric. Our engine "
            "`sbp-reduced` implements it; tests check it against the paper's definition.",
        ),
    ),
]
