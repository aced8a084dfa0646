"""OpenFlow 1.3: messages, the guard of each connection, sessions with switches."""
