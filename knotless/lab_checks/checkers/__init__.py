"""The checkers of the labs, one module each: see :mod:`knotless.lab_checks.lab`."""
