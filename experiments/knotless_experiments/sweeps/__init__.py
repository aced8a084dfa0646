"""Grids of simulations and analyses, run on many processes: ``knotless sweep``.

``grid`` reads the file, ``settings`` defines the settings of a point, ``figures`` runs a point,
``folder`` stores results, ``cluster`` provides processes, ``run`` combines them. The result of a
point depends on its settings only, never on where or when it runs.
"""
