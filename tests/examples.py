"""How many examples a property test draws: its own number at `make test`, fewer at `make quick`, more at `test-all`."""

from __future__ import annotations

from hypothesis import settings

STEADY = 50  # examples of a property test that names no number
FEWEST = 5


def examples(count: int) -> int:
    """Return the number of examples under the profile in use, for a test that draws `count` at `make test`."""
    return max(FEWEST, count * settings().max_examples // STEADY)
