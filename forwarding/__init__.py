"""What every switch does with every packet: from plans, to switches, and read back from them."""
