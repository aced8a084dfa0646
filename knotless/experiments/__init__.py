"""Experiments on fabrics: framework, workloads, studies, and the reproduction of papers."""
