"""What every part may use: errors, files and waiting."""
