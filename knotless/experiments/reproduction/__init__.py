"""Comparison of the papers' measurements with ours: ``docs/reproduction.md``, from stored runs.

``figures`` computes figures from rows, ``paper_*`` and ``programs`` hold each paper's figures and
the computation of ours, ``claims`` lists them all, ``page`` writes the page.
"""
