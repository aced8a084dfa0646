"""Folders of results, plots, and the versions and machine of a run."""
