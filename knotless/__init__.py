"""The `knotless` command."""
