"""Kinds of choice among next hops or paths: one file each; ``requested`` has those of options."""
