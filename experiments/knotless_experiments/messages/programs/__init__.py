"""Parallel programs: MPI on the emulated fabric, threads and traces in simulation."""
