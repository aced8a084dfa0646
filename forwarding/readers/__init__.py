"""Readers of files from which fabrics are imported: one module for each kind of file."""
