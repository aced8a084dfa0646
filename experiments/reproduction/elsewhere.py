"""The papers' tables and figures without a measurement that can be repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ELSEWHERE: Mapping[str, Sequence[str]] = {
    "000": (
        "Figures 1 to 3 and table 2 are drawings and a description of the machine. `knotless "
        "topology` draws our fabrics.",
        "Table 8 divides the time of two programs into computing, sending and waiting. It depends "
        "on the paper's hosts and their software. Here, emulated processes share the cores of one "
        "machine, and simulated ones compute in no time.",
    ),
    "001": (
        "Figures 1 and 4 and tables 1 and 2 are drawings, a program and a description of the "
        "machine. Figure 3 compares the bandwidth of its messages with that of M-VIA between its "
        "PCs. For our messages and alternatives on one machine, see [messages.md](messages.md).",
        "Figures 5 to 10 are curves over the number of hosts. The figures compared here are from "
        "the text. `knotless run barrier --hosts 2,4,8,16,32` plots ours.",
    ),
    "002": (
        "Figures 1 to 8 and 11 to 16 and table 2 are definitions and drawings. Tables 1, 3 and 4 "
        "and figures 9 and 10 are the schedules, the settings and the sizes. Tests compare ours "
        "with them, and state where table 3 deviates from the text. Tables 6 to 8 describe "
        "machines.",
    ),
    "003": (
        "Figures 1 to 6, figure 8 and tables 1 and 2 are drawings, descriptions of boards and "
        "lists. For its primitives, see [messages.md](messages.md).",
        "Its routing needs fewer virtual channels than the diameter of a fabric. Our engine "
        "`sbp-reduced` implements it; tests check it against the paper's definition.",
    ),
    "004": (
        "Figures 1 to 5, 7 and 8 and table 2 are drawings and a description of the machine. For "
        "the output of `knotless export` for its kind of switch, see [vlans.md](vlans.md).",
    ),
}
"The tables and figures of each paper that are not compared, and why."
