"""Topology families, one module each; :mod:`knotless.topologies.registry` finds them."""
