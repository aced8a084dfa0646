"""Tables and figures of the papers without a measurement, or without one that we can repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ELSEWHERE: Mapping[str, Sequence[str]] = {
    "000": (
        "Figures 1 to 3 and table 2 are drawings and the machine. `knotless topology` draws ours.",
        "Table 8 splits the time of two programs into computing, sending and waiting. That is the "
        "time of its hosts and their software: emulated processes share the cores of one machine, "
        "and simulated ones compute in no time.",
    ),
    "001": (
        "Figures 1 and 4 and tables 1 and 2 are drawings, a program and the machine. Figure 3 "
        "is the bandwidth of its messages and of M-VIA's between its PCs: ours, against other ways "
        "on the same machine, is in [messages.md](messages.md).",
        "Figures 5 to 10 are curves over the number of hosts; the text has the numbers that are "
        "compared here. `knotless run barrier --hosts 2,4,8,16,32` plots ours.",
    ),
    "002": (
        "Figures 1 to 8 and 11 to 16 and table 2 are definitions and drawings. Tables 1, 3 and 4 "
        "and figures 9 and 10 are the schedules, the settings and the sizes: tests hold ours "
        "against them, and say where table 3 does not follow the text. Tables 6 to 8 are machines.",
    ),
    "003": (
        "Figures 1 to 6, figure 8 and tables 1 and 2 are drawings, boards and lists: its "
        "primitives are in [messages.md](messages.md).",
        "Its routing needs fewer virtual channels than a fabric's diameter: engine `sbp-reduced`, "
        "held against that definition by tests.",
    ),
    "004": (
        "Figures 1 to 5, 7 and 8 and table 2 are drawings and the machine: what `knotless export` "
        "writes for its kind of switch is in [vlans.md](vlans.md).",
    ),
}
"""Sentences about each paper's other tables and figures."""
