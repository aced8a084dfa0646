"""Whole commands and their processes, without root."""
