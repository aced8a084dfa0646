"""The formats of configuration files for 802.1Q switches, one module each."""
