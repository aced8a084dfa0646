"""From what has failed, and what is configured, to proven steps on all switches."""
