"""The election of one of several controllers, and its takeover of the switches."""
