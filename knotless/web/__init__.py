"""The live web page: a process of its own that reads a fabric's emulator and controller."""
