"""Property tests draw the same examples every time; `make test-all` explores new ones.

Most of a test that trains is spent compiling a program that runs for a moment: JAX is asked to optimise less, and to
keep programs for tests that compile the same.
"""

import os
from pathlib import Path

from hypothesis import settings

PROGRAMS = Path(__file__).parents[1] / ".pytest_cache" / "programs"
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(PROGRAMS))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")

settings.register_profile("steady", derandomize=True)
settings.register_profile("explore", derandomize=False, max_examples=200, print_blob=True)
settings.load_profile("steady")
