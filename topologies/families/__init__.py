"""Topology families, one module each; :mod:`topologies.registry` finds them."""
