"""The forwarding state: what every switch does with every packet."""
