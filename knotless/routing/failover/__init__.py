"""Backup paths for every single failure, which switches take without a controller."""
