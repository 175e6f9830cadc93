"""Where the last token of a chain of facts attends."""

from __future__ import annotations

import numpy as np
import pytest

from vitrify.claims.multi_hop_reasoning_is_learned_in_a_sharp_transition import attention_to_chain
from vitrify.sandboxes.catalogue import Example


def test_what_the_last_token_looks_at_is_the_end_of_one_step_and_all_of_the_next() -> None:
    shares = np.random.default_rng(0).dirichlet(np.ones(9), size=(2, 2, 1, 9))  # [block, row, head, query, token]
    seen = {f"blocks.{block}.attn.hook_pattern": shares[block - 1] for block in (1, 2)}
    row = Example(np.zeros((2, 9)), np.zeros((2, 10)), np.zeros((2, 10)), {"steps": np.array([[0, 3], [1, 2]])})
    ends = (shares[0, 0, 0, 8, 1] + shares[0, 1, 0, 8, 3]) / 2
    steps = (shares[1, 0, 0, 8, 6:8].sum() + shares[1, 1, 0, 8, 4:6].sum()) / 2
    assert attention_to_chain(1, None, None, row, seen) == pytest.approx(ends, rel=1e-5)
    assert attention_to_chain(2, None, None, row, seen) == pytest.approx(steps, rel=1e-5)
