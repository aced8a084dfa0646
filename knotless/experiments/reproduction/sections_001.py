"""The sections of the page on Iwasaki et al."""

from __future__ import annotations

from knotless.experiments.reproduction.claim import Plot, Section
from knotless.experiments.reproduction.paper_001 import NETWORKS, ONE_WAY, TIMES
from knotless.experiments.reproduction.plots import paper_001 as draw

SECTIONS_001 = [
    Section(
        "Figure 2: a message",
        ONE_WAY,
        commands=("knotless run logp --fabric flat,32 --rate 100 --delay 2.03",),
    ),
    Section(
        "Figures 5 to 8: barriers over the number of hosts",
        TIMES,
        plots=(
            Plot(
                "001-figures-5-to-8",
                "Barrier time over the number of hosts, on a switch and on a repeater hub. Lines: "
                "simulation. Crosses: the paper's printed times; its curves are only drawn.",
                draw.figures_5_to_8,
            ),
        ),
        commands=(
            "knotless run barrier --fabric flat,32 --rate 100 --delay 2.03 --hosts 2,4,8,16,32",
            "knotless run barrier --fabric hub,32 --rate 100 --hosts 2,4,8,16,32",
            "sudo knotless run barrier --on emulation --fabric flat,32 --rate 100 --delay 2.03 "
            "--hosts 31,32 --barriers 30 --computing 0 --slow-down 200 --repeats 3",
        ),
    ),
    Section(
        "Figures 9 and 10: two networks",
        NETWORKS,
        plots=(
            Plot(
                "001-figures-9-and-10",
                "Barrier time with one and two networks. Lines: simulation. Crosses: the paper's "
                "printed times.",
                draw.figures_9_and_10,
            ),
        ),
        commands=(
            "knotless run barrier --fabric flat,32 --rate 100 --delay 2.03 --networks 1,2 "
            "--hosts 8,15,16,32 --algorithms tree3,concurrent",
            "sudo knotless run barrier --on emulation --fabric flat,32 --rate 100 --delay 2.03 "
            "--networks 1,2 --hosts 15,16 --algorithms tree3,concurrent --barriers 30 "
            "--computing 0 --slow-down 200 --repeats 5",
        ),
    ),
    Section(
        "Not compared",
        missing=(
            "Figures 1 and 4 and tables 1 and 2 are drawings, a program and a description of the "
            "machine.",
            "Figure 3 (bandwidth of MCD and M-VIA) is not attempted: it measures the interfaces "
            "and the memory of the paper's PCs. For our messages on one machine, see "
            "[messages.md](../messages.md).",
        ),
    ),
]
