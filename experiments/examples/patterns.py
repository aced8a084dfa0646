"""Traffic patterns on a fabric: the most loaded channel, and what a simulation delivers."""

from __future__ import annotations

import sys

import knotless as kn

PATTERNS = ("neighbour", "shuffle", "tornado", "permutation")


def main(spec: str) -> None:
    """Print a line for each pattern."""
    plan = kn.plan(spec)
    for pattern in PATTERNS:
        load = kn.analyse(plan, pattern)["max_channel_load"]
        done = kn.simulate(plan, pattern)
        mbps, text = done["throughput_mbps"], done.text
        print(f"{pattern:12} flows on a channel: {load:2}  {mbps:7.1f} Mbit/s  {text}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "torus,4,4")
