"""Computations of claims that no selector does: one file for each paper."""
