"""Cables: what LLDP daemons print, and files that list cables."""
