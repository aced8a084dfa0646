"""Barriers of the emulated and of the simulated fabric."""
