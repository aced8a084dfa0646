"""The sections of the page on Otsuka et al."""

from __future__ import annotations

from knotless.experiments.reproduction.claim import Plot, Section
from knotless.experiments.reproduction.paper_004 import TAGS, TOPOLOGIES, TRAFFIC
from knotless.experiments.reproduction.paper_004_deadlocks import TESTS, bandwidths, losses
from knotless.experiments.reproduction.plots import paper_004 as draw
from knotless.experiments.reproduction.programs import COMPUTING_004, FIGURE_12

TRANSFERS = "--pattern a,b,c,d,e,f --flow-control none,host,switch,pause"
GIGABIT = "--rate 1000 --delay 1"
FIGURE_10 = f"--part open-loop --protocol udp --pattern bit-reversal,transpose {GIGABIT}"

SECTIONS_004 = [
    Section(
        "Table 1 and figure 6: topologies",
        TOPOLOGIES,
        commands=("knotless run paths --quick",),
    ),
    Section(
        "Figures 10 and 11: traffic of 16 hosts",
        TRAFFIC,
        plots=(
            Plot(
                "004-figure-10",
                "Figure 10: mean bandwidth of 16 hosts. The paper prints one of its bars.",
                draw.figure_10,
            ),
        ),
        commands=(
            f"sudo knotless run traffic {FIGURE_10} --duration 0.05 --repeats 5",
            f"knotless run traffic {FIGURE_10} --duration 0.05 --on simulation",
        ),
    ),
    Section(
        "Figure 9: what tags cost",
        TAGS,
        commands=(
            f"sudo knotless run hops {GIGABIT} --tagging switch,none --duration 0.005 "
            "--slow-down 100 --repeats 3",
            f"knotless run hops {GIGABIT} --on simulation",
        ),
    ),
    *(
        Section(
            f"Table {number}: deadlock, tags set by {words}",
            [*bandwidths(tagging), *losses(tagging)],
            plots=(
                Plot(
                    f"004-table-{number}",
                    f"Table {number}, UDP: bandwidth of a transfer as a share of the line.",
                    draw.table(tagging),
                ),
            ),
            commands=(
                f"sudo knotless run deadlock {TRANSFERS} {GIGABIT} --tagging {tagging} "
                "--protocol udp --duration 0.1 --repeats 5",
                f"sudo knotless run deadlock {TRANSFERS} {GIGABIT} --tagging {tagging} "
                "--protocol tcp --duration 0.1 --slow-down 20",
                f"knotless run deadlock {TRANSFERS} {GIGABIT} --tagging {tagging} --duration 0.1 "
                "--on simulation",
            ),
        )
        for number, tagging, words in ((4, "switch", "switches"), (3, "host", "hosts"))
    ),
    Section(
        "Tests of explanations: the rate of the links, a watchdog",
        TESTS,
        commands=(
            f"knotless run deadlock --on simulation {TRANSFERS}",
            f"knotless run deadlock --on simulation {TRANSFERS} {GIGABIT} --duration 0.5 "
            "--flow-control switch,pause --watchdog 1000",
        ),
    ),
    Section(
        "Figure 12: NAS Parallel Benchmarks",
        FIGURE_12,
        commands=(
            "sudo knotless run nas --fabric torus,4,4,rate=1000,delay=5 "
            "--fabric mtree,4,4,rate=1000,delay=5 --fabric flat,16,rate=1000,delay=5 "
            "--engines auto --kernels is,ft --slow-down 200",
            "knotless run nas --on simulation --fabric torus,4,4,rate=1000,delay=5 --processes 16",
        ),
        missing=("Mesh, fat-tree and Clos are only simulated, the paper's other kernels too.",),
    ),
    Section(
        "Test of an explanation: computing",
        COMPUTING_004,
        commands=(
            "knotless run nas --on simulation --fabric torus,4,4,rate=1000,delay=5 "
            "--processes 16 --computing 1",
        ),
    ),
    Section(
        "Not compared",
        missing=(
            "Figures 1 to 5, 7 and 8 and table 2 are drawings and a description of the machine. "
            "For the output of `knotless export` for its kind of switch, see "
            "[vlans.md](../vlans.md).",
        ),
    ),
]
