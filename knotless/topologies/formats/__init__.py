"""Formats of fabric files, one module each."""
