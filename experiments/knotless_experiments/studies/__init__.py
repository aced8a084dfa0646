"""The experiments, one folder each."""
