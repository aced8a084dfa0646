"""How much the tests do: three tiers, their seeds, and what each of them costs.

``gate``
    Tests of every kind at small depth; what a change can reach runs deeper. Minutes.
``deep``
    Every test at its full depth, with the seed of ``tests/SEED``.
``night``
    Every test at more than its full depth, with the next seed, which is then that of all tiers.

``python -m tests.tiers TIER`` runs one (``make test``, ``test-deep``, ``test-night``). Tests say in
markers, which :mod:`tests.tiers.plugin` lists, how much of them is for the gate.
"""
