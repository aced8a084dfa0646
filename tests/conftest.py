"""What holds for every test: examples are the same in every run, and Ctrl-C is Ctrl-C."""

import signal

from hypothesis import settings

settings.register_profile("knotless", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("knotless")

# What a shell starts in the background ignores SIGINT, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
