"""OpenFlow 1.3 rules: compilation from a forwarding state, and the reader back to one."""
