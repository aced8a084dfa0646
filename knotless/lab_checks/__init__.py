"""The labs for students, and their checkers."""
