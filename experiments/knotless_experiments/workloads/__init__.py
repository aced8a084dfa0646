"""The workloads of experiments: iperf3, messages, MPI and the NAS kernels."""
