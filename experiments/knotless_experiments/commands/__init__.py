"""The commands of experiments; the table of all commands is :mod:`knotless.cli.groups`."""
