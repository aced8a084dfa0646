"""The files that an 802.1Q switch is configured by, one kind to a module."""
