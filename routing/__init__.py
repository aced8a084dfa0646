"""Routing: engines, plans, VLANs, rules."""
