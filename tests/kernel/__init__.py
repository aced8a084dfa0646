"""A real Linux kernel for tests, whatever the kernel of this machine can do."""
