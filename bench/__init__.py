"""Benchmarks of the emulated fabric; ``python -m bench`` runs them (as root)."""
