"""Routing engines, one module each; :mod:`routing.engine` finds them."""
