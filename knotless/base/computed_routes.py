"""How routes can be taken from the configurations of routers instead of lists of routes."""

COMPUTED = ("bgp", "static")
"""As BGP computes them, or static ones alone."""
