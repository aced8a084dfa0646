"""Readers of files with the state of other fabrics: one module for each kind of file."""
