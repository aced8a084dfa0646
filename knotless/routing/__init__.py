"""Routing: engines, plans and VLANs."""
