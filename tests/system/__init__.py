"""Whole commands and programs with their processes, without root."""
