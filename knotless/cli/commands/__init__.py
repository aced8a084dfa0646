"""The subcommands, one module each; the click command is ``command``."""
