"""OpenFlow 1.3 rules of a forwarding state, written and read."""
