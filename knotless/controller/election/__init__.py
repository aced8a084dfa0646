"""Which of several controllers is active, and how it takes the switches over."""
