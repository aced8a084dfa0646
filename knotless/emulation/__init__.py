"""Real fabrics on this machine: Mininet, a private Open vSwitch and the link emulator."""
