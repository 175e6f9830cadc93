"""Property tests draw the same examples every time; `make test-all` explores new ones."""

from hypothesis import settings

settings.register_profile("steady", derandomize=True)
settings.register_profile("explore", derandomize=False, max_examples=200, print_blob=True)
settings.load_profile("steady")
