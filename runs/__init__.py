"""Folders of results, plots, and what a run was made with."""
