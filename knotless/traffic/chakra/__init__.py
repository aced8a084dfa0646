"""Execution traces in Chakra's format, as operations of ranks.

A trace has a file for each rank, with nodes that compute, send, receive or take part in a
collective operation, and what each of them waits for. Its schema is ``et_def.proto`` of MLCommons
Chakra (github.com/mlcommons/chakra, schema/protobuf); field numbers and names read here are those
of GlobalMetadata version 0.0.4 and of commit 6dc63e1. What that file does not say (which attributes
a node has, and what its sizes count) follows ASTRA-sim, which reads the same traces
(astra-sim/workload/Workload.cc, feeder_v3).

Reference: Sridharan et al.: Chakra: advancing performance benchmarking and co-design using
standardized execution traces, 2023.
"""
