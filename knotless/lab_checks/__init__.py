"""What a lab is, and the checkers of the labs for students."""
