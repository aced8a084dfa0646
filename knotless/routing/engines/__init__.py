"""Routing engines, one module each; :mod:`knotless.routing.engine` finds them."""
