"""Shared parts of benchmarks: traffic, events, attacks, OpenSM, figures and their tables."""
