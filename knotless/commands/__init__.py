"""One module for each command, named as it is, with the click command as ``command``."""
