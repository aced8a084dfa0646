"""What experiments run on a fabric: iperf3, messages, MPI and the NAS kernels."""
