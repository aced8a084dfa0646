"""Comparison of the papers' measurements with ours: ``docs/reproduction.md``, from stored runs.

``figures`` computes figures from rows, ``claims`` has each paper's figures and how ours are
computed, ``page`` writes the page.
"""
