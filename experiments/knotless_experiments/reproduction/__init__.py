"""Comparison of the papers' measurements with ours: ``docs/reproduction.md``, from stored runs.

The papers' figures are in ``experiments/AUTHOR/claims.yaml``, which ``claims_file`` reads and
checks. ``selectors`` computes ours from rows, ``papers`` what no selector does, ``plots`` draws
the papers' figures; ``claims`` lists all papers, ``page`` writes the pages.
"""
