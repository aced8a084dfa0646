"""The checkers of the labs, one module each: see :mod:`labs.lab`."""
