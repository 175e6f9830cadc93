"""Property tests draw the same examples every time; `make test-all` explores new ones.

Most of a test that trains is spent compiling a program that runs for a moment: JAX is asked to optimise less.
"""

import os

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

settings.register_profile("steady", derandomize=True)
settings.register_profile("explore", derandomize=False, max_examples=200, print_blob=True)
settings.load_profile("steady")


@pytest.fixture
def quick_compiling() -> Iterator[None]:
    """JAX programs that compile in a third of the time, for tests that take few steps with them."""
    import jax

    config: Any = jax.config
    config.update("jax_disable_most_optimizations", True)
    yield
    config.update("jax_disable_most_optimizations", False)
