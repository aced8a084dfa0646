"""The sections of the page on Koibuchi et al."""

from __future__ import annotations

from knotless.experiments.reproduction import paper_000 as paper
from knotless.experiments.reproduction.claim import Plot, Section
from knotless.experiments.reproduction.paper_000_barriers import BARRIERS, FITTED_LINKS
from knotless.experiments.reproduction.plots import paper_000 as draw
from knotless.experiments.reproduction.programs import COMPUTING_000, PROGRAMS_000, REST_000

DRAWN_ONLY = (
    "The paper's curves are only drawn, without numbers, so the plots show ours: simulated at the "
    "paper's rate, with cut-through."
)
SECTIONS_000 = [
    Section(
        "Section 4.1 and table 1: fabrics and engines",
        paper.FABRICS,
        commands=("knotless run paths",),
    ),
    Section(
        "Figures 4 to 7: bandwidth over the size of messages",
        paper.BANDWIDTH,
        plots=tuple(
            Plot(
                f"000-figure-{number}",
                f"Figure {number}, {name}: bandwidth over the size of messages, simulated.",
                draw.figures_4_to_7(fabric),
            )
            for number, name, fabric in (
                (4, "topology A", paper.A),
                (5, "topology B", paper.B),
                (6, "mesh", paper.MESH),
                (7, "torus", paper.TORUS),
            )
        ),
        commands=(
            "knotless run traffic --on simulation --part acknowledged --rate 6000 --delay 0.2 "
            "--cut-through 40 --duration 0.005",
            "sudo knotless run traffic --part acknowledged --size 1792 --fabric irregular-a "
            "--fabric irregular-b --fabric mesh,4,4,hosts=4 --fabric torus,4,4,hosts=4 "
            "--engine updown,dl:2,sbp,updown:4 --rate 6000 --delay 0.2 --duration 0.001 "
            "--slow-down 10000",
            "sudo knotless run traffic --part acknowledged --size 1792 --fabric mesh,4,4,hosts=4 "
            "--engine dor --rate 6000 --delay 0.2 --duration 0.001 --slow-down 10000",
        ),
        notes=(
            DRAWN_ONLY,
            "A message of 1,792 bytes takes two Ethernet packets here, one packet in the paper.",
        ),
        missing=(
            "Emulation covers messages of 1,792 bytes. The other sizes are not attempted: there "
            "are some 600 cases.",
        ),
    ),
    Section(
        "Test of an explanation: the links, and how switches forward",
        paper.RATE_TESTS,
        commands=(
            "knotless run traffic --on simulation --part acknowledged --size 1792 "
            "--fabric irregular-a --fabric irregular-b --fabric mesh,4,4,hosts=4 "
            "--fabric torus,4,4,hosts=4 --engine updown,dl:2,sbp,updown:4 --rate 6000 --delay 0.2 "
            "--duration 0.002",
        ),
    ),
    Section(
        "Figures 8 and 10: the cost of a switch",
        paper.HOPS,
        plots=(
            Plot(
                "000-figures-8-and-10",
                "The cost of a switch for two hosts. The paper prints the slopes; its curves are "
                "drawn from the first simulated point.",
                draw.figures_8_and_10,
            ),
        ),
        commands=(
            "knotless run hops --on simulation --rate 6000 --delay 0.1",
            "sudo knotless run hops --rate 6000 --delay 0.1 --measure messages,barrier "
            "--tagging switch --duration 0.005 --slow-down 100 --repeats 3",
        ),
    ),
    Section(
        "Figure 9: path selection",
        paper.SELECTION,
        plots=(
            Plot(
                "000-figure-9",
                "Figure 9: bandwidth with paths spread over hosts and with the lowest port first, "
                "simulated.",
                draw.figure_9,
            ),
        ),
        commands=(
            "knotless run traffic --on simulation --part acknowledged --select spread,low-port "
            "--engine updown,sbp,dl:2 --rate 6000 --delay 0.2 --cut-through 40 --duration 0.005",
            "sudo knotless run traffic --part acknowledged --size 1792 --fabric irregular-a "
            "--fabric mesh,4,4,hosts=4 --engine updown,dl:2,sbp --select low-port "
            "--pattern bit-reversal,transpose --rate 6000 --delay 0.2 --duration 0.001 "
            "--slow-down 10000",
        ),
        notes=(DRAWN_ONLY,),
    ),
    Section(
        "Table 9: simulation of saturated hosts",
        paper.TABLE_9,
        plots=(
            Plot(
                "000-table-9",
                "Table 9: all cases of ours (four fabrics with four patterns), and the paper's "
                "largest.",
                draw.table_9,
            ),
        ),
        commands=(
            "knotless run traffic --on simulation --part open-loop --fabric irregular-a "
            "--fabric irregular-b --fabric mesh,4,4,hosts=4 --fabric torus,4,4,hosts=4 "
            "--engine updown,dl:2,dl:3 --select spread,low-port --rate 6000 --delay 0.2 "
            "--duration 0.01",
        ),
    ),
    Section(
        "Table 3: barriers of 64 hosts",
        [*BARRIERS, *FITTED_LINKS],
        plots=(
            Plot(
                "000-table-3",
                "Table 3: barrier time over that of up*/down* with one virtual channel.",
                draw.of_claims(
                    BARRIERS,
                    7.4,
                    [
                        f"{c.place[8:].replace(', in brackets', '*')}: "
                        f"{c.what[16:].partition(' over')[0]}"
                        for c in BARRIERS
                    ],
                ),
            ),
        ),
        commands=(
            "knotless run barrier --fabric irregular-a --fabric irregular-b "
            "--fabric mesh,4,4,hosts=4 --engines prefix,updown,updown:2,updown:4,sbp,dl:2 "
            "--algorithms unicast --lists 10 --rate 6000 --delay 0.2 --cut-through 40 "
            "--bytes 118 --send 0.3 --receive 0.5 --gap 0.3 --interrupt 0 --computing 1",
            "sudo knotless run barrier --on emulation --fabric irregular-a --fabric irregular-b "
            "--fabric mesh,4,4,hosts=4 --engines prefix,updown,updown:2,updown:4,sbp,dl:2 "
            "--algorithms unicast --lists 5 --barriers 5 --rate 6000 --delay 0.2 --computing 0 "
            "--slow-down 10000",
        ),
    ),
    Section(
        "Tables 4 to 7: NAS Parallel Benchmarks",
        PROGRAMS_000,
        plots=(
            Plot(
                "000-tables-4-to-7",
                "Tables 4 to 7: time of DL over that of up*/down* with one virtual channel.",
                draw.of_claims(
                    [c for c in PROGRAMS_000 if "of DL" in c.what],
                    7.4,
                    [
                        f"{c.place.partition(', ')[2]}: {c.what.partition(':')[0]}"
                        for c in PROGRAMS_000
                        if "of DL" in c.what
                    ],
                ),
            ),
        ),
        commands=(
            "knotless run nas --on simulation --fabric irregular-a,rate=6000,delay=0.1 "
            "--engines updown,updown:2,updown:4,dl:2 --processes 16 --kernels is,cg",
            "sudo knotless run nas --fabric irregular-a,hosts=1,rate=6000,delay=0.1 "
            "--fabric irregular-b,hosts=1,rate=6000,delay=0.1 "
            "--fabric mesh,4,4,rate=6000,delay=0.1 --fabric torus,4,4,rate=6000,delay=0.1 "
            "--engines updown,dl:2 --kernels is --slow-down 200",
        ),
        missing=(
            "Table 8 divides the time of two programs into computing, sending and waiting. It "
            "depends on the paper's hosts and their software, and is not attempted.",
        ),
    ),
    Section(
        "Tests of explanations: time outside the network, computing", [*REST_000, *COMPUTING_000]
    ),
    Section(
        "Not compared",
        missing=(
            "Figures 1 to 3 and table 2 are drawings and a description of the machine. "
            "`knotless topology` draws our fabrics.",
        ),
    ),
]
