"""FRR: what its ``show`` commands print."""
