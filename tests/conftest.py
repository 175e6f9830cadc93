"""Property tests draw the same examples every time; `make test-all` explores new ones.

Most of a test that trains is spent compiling a program that runs for a moment: JAX is asked to optimise less.
"""

import os

from hypothesis import settings

os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

settings.register_profile("steady", derandomize=True)
settings.register_profile("explore", derandomize=False, max_examples=200, print_blob=True)
settings.load_profile("steady")
