"""Experiments: framework, studies, workloads, sweeps, messages, and what papers measured."""
