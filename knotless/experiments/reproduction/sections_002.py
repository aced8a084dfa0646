"""The sections of the page on Shimizu and Nakashima."""

from __future__ import annotations

from knotless.experiments.reproduction.claim import Plot, Section
from knotless.experiments.reproduction.paper_002 import ANALYSED, LARGE, MEASURED
from knotless.experiments.reproduction.plots import paper_002 as draw

EXCHANGES = "--configuration \"S1,S2,S3,S1',S2',S3'\" --rate 32000 --delay 0.5 --datagrams 512"
"""The data rate of the paper's links (InfiniBand QDR)."""

SECTIONS_002 = [
    Section(
        "Figure 17: shift and proposed schedule, path analysis",
        ANALYSED,
        commands=("knotless run all-to-all --on analysis",),
    ),
    Section(
        "Figures 19 to 22: exchanges of 8 to 27 hosts",
        MEASURED,
        plots=(
            Plot(
                "002-figures-19-to-22",
                "Throughput of hosts as a share of the line rate: the paper's printed plateaus "
                "(1,400, 2,700 and 1,500 MiB/s; 3,700 of 3,717), and ours.",
                draw.figures_19_to_22,
            ),
        ),
        commands=(
            f"sudo knotless run all-to-all {EXCHANGES} --slow-down 5000",
            f"knotless run all-to-all {EXCHANGES} --on simulation",
        ),
        missing=(
            "Throughput over message sizes from 1 byte to 256 MiB is not attempted: ours are of "
            "0.7 MiB, and an emulated exchange of 256 MiB takes hours.",
        ),
    ),
    Section(
        "Figure 18: up to 5,526 hosts, path analysis",
        LARGE,
        plots=(
            Plot(
                "002-figure-18",
                "Throughput ratio over the number of hosts. Lines: ours, from stored path "
                "analyses. Cross: the only value that the paper prints; its curves are only "
                "drawn.",
                draw.figure_18,
            ),
        ),
        commands=("knotless run all-to-all --on analysis --configuration L1,L2,L3,L4,L5,L6",),
    ),
    Section(
        "Not compared",
        missing=(
            "Figures 1 to 8 and 11 to 16 and table 2 are definitions and drawings. Tables 1, 3 "
            "and 4 and figures 9 and 10 are the schedules, the settings and the sizes. Tests "
            "compare ours with them, and state where table 3 deviates from the text. Tables 6 to "
            "8 describe machines.",
        ),
    ),
]
