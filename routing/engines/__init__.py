"""One module for each routing engine; :mod:`routing.engine` finds them all."""
