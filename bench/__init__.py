"""Benchmarks; ``python -m bench`` measures the emulated fabric (as root)."""
