"""Green threads: a hub that runs them in turn, and what they wait for."""
