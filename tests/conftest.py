"""What holds for every test: generated examples are the same in every run, however slow."""

from hypothesis import settings

settings.register_profile("knotless", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("knotless")
