"""Grids of simulations and analyses, run on many processes: ``knotless sweep``.

``grid`` reads what is asked for, ``settings`` says what a point of it may set, ``figures`` runs
one point, ``folder`` keeps what was found, ``cluster`` gives the processes, ``run`` puts them
together. A result depends on its point alone, never on where or when it was run.
"""
