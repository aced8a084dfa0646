"""Hints for computing routes from configurations of routers instead of reading lists of routes."""

COMPUTED = ("bgp", "static")
"""As BGP computes them, or static ones alone."""
