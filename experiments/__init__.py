"""Experiments on fabrics: what is run, what is measured, and how it is shown."""
