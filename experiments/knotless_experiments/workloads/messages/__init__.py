"""Messages between hosts, by UDP or by the endpoint library."""
