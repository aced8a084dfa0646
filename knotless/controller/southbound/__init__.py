"""Talking OpenFlow with switches: what is checked before Ryu reads it, and Ryu's listener."""
