"""Messages and barriers between hosts, MPI programs, and the NAS kernels."""
