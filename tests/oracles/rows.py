"""The second sampler of every sandbox, `reference(sandbox, rng, count)`."""

from __future__ import annotations

from oracles import rows_of_chains, rows_of_words
from oracles.rows_base import reference

__all__ = ["reference", "rows_of_chains", "rows_of_words"]
