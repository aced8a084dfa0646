"""What claims of a paper compute that no selector does: one file for each paper."""
