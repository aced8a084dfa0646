"""What the papers measured beside what we do: ``docs/reproduction.md``, from stored runs alone.

``stored`` keeps and reads the runs, ``figures`` takes figures out of their rows, ``claims`` says
what each paper measured and what is held beside it, ``page`` writes it down.
"""
