"""A real Linux kernel for tests, independent of the kernel of this machine."""
