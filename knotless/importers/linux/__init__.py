"""Linux: what ip, bridge and dcb print."""
