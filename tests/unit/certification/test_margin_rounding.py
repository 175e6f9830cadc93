"""Proofs of margins count what float64 rounds: exact arithmetic agrees, and a prover that forgets a step is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from audit_rounding import rounding_contradiction
from rounded_nets import LARGE, ROUNDED_NETS, WIDTH, WRITTEN
from vitrify.certification.margins import net as margin_net
from vitrify.certification.margins.net import margins
from vitrify.certification.margins.rounding import ValuePath
from vitrify.certification.margins.units import UnitLayer
from vitrify.certification.precision.formats import Format
from vitrify.certification.precision.rounding import bounded_stream
from vitrify.constructions.catalogue import build
from vitrify.net.architecture import Output
from vitrify.net.labels import Labels, SpaceLabel
from vitrify.net.spaces import Reals
from vitrify.net.transformer import Block, Head, Ties, Transformer
from vitrify.net.weights import Weights
from vitrify.spec.ngrams.families import random_ngram

WORDS = [np.array(word) for length in (1, 2, 3) for word in product((1, 2), repeat=length)]


@pytest.mark.parametrize("step", ROUNDED_NETS)
def test_numbers_that_cancel_are_as_far_off_as_was_proved(step: str) -> None:
    weights = ROUNDED_NETS[step]()
    proof = margins(weights)
    assert proof.holds == (step != "queries"), proof.reason
    if proof.holds:
        assert rounding_contradiction(weights, proof, WORDS) is None
        assert proof.error is not None
        assert proof.error < 0.01  # float64 rounds `LARGE` to multiples of 1e-4


def no_error(_: Any, *parts: Any, **__: Any) -> Any:
    """Return zeros, one for each column of the matrix that is the second argument."""
    return np.zeros(parts[1].shape[1])


def exact_pads(*given: Any, real: Any = bounded_stream) -> Any:
    return [(x, 0 * error) for x, error in real(*given)]


def nothing_written(*given: Any) -> Any:
    return np.zeros(len(given[-1]))


Forgetful = tuple[Any, str, Callable[..., Any], str]
FORGETFUL_PROVERS: dict[str, Forgetful] = {  # what is forgotten, by what, and the net that shows it
    "embeddings": (margin_net, "embedding_error", lambda _, embed, __: np.zeros(embed.shape[1]), "embedding"),
    "values and outputs": (ValuePath, "error", lambda path, *_, **__: np.zeros(len(path.terms)), "values"),
    "means": (ValuePath, "_mixed", lambda *_: 0.0, "shared_values"),
    "queries": (Format, "linear", no_error, "queries"),
    "additions": (margin_net._MarginRun, "_summed", lambda *given: given[2], "residual"),
    "sums of units": (UnitLayer, "rounded", lambda *given: np.zeros(len(given[2])), "units"),
    "what units write": (UnitLayer, "written_error", nothing_written, "written"),
    "what is left": (UnitLayer, "leaves", lambda *_: 0.0, "erased"),
    "pads": (margin_net, "bounded_stream", exact_pads, "pads"),
    "logits": (Format, "linear", no_error, "logits"),
}


@pytest.mark.parametrize("fault", FORGETFUL_PROVERS)
def test_a_prover_that_forgets_a_rounding_is_found_out(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, wrong, step = FORGETFUL_PROVERS[fault]
    monkeypatch.setattr(where, name, wrong)
    weights = ROUNDED_NETS[step]()
    proof = margins(weights)
    assert proof.holds
    assert rounding_contradiction(weights, proof, WORDS)


def test_each_statement_is_held_against_exact_arithmetic() -> None:
    weights = ROUNDED_NETS["values"]()
    proof = margins(weights)
    assert proof.error is not None
    assert proof.margin is not None
    exact = tuple(replace(space, error=0 * space.error) for space in proof.spaces)
    wrong = {
        "logits are": replace(proof, error=proof.error / 100),
        "an answer has a margin of": replace(proof, margin=proof.margin + 0.01),
        "further from the ideal": replace(proof, spaces=exact),
    }
    for sentence, false in wrong.items():
        assert sentence in (rounding_contradiction(weights, false, WORDS) or "")


# ---- nothing grows with the number of keys where one key has all the weight, or few are seen
def reading_net(head: Head, length: int) -> Weights:
    """A head that reads the embeddings of keys whose scores are all 0."""
    output = Output("values", ("x",), error=1.0)
    net = Transformer(("<s>", "a", "b"), output, length, WIDTH, (Block((head,), 1, 1, 0),))
    arrays = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["embed.W_E"][:, 0] = 0.1, 1 / 3, 2 / 3
    arrays["blocks.0.attn.beta"][:] = 1.0
    arrays["blocks.0.attn.W_V"][0, 0, 0], arrays["blocks.0.attn.W_O"][0, 0, WRITTEN] = 1 / 3, 1 / 7
    arrays["unembed.W_U"][WRITTEN, 0] = 1.0
    return Weights(net, arrays, Labels((SpaceLabel("read", Reals(("x",), -LARGE, LARGE), (WRITTEN,), 1, 9),)))


@pytest.mark.parametrize("ties", ["left", "right"])
def test_a_head_that_takes_one_of_tied_keys_rounds_no_more_on_longer_words(ties: Ties) -> None:
    errors = [margins(reading_net(Head("hard", "causal", ties=ties), length)).error for length in (5, 500)]
    assert errors[0] == errors[1] is not None


@pytest.mark.parametrize("attention", ["softmax", "hard"])
def test_keys_outside_of_a_window_do_not_count(attention: Any) -> None:
    heads = Head(attention, "causal", window=3, ties="average", resolution=1.0)
    short, long = (margins(reading_net(heads, length)) for length in (5, 500))
    assert short.holds
    assert short.error == long.error
    open_ = replace(heads, window=None)
    assert (margins(reading_net(open_, 500)).error or 0) > 10 * (long.error or 1)


def test_positions_far_from_zero_make_a_proof_weaker() -> None:
    """Shift a position code by 1e10: the function is the same, and its rounding is not."""
    weights = build(random_ngram(2, 3, seed=1), "heads", attention="softmax", max_length=12)
    index = next(s for s in weights.labels.spaces if s.born == 0 and weights.arrays["pos_embed.W_pos"][:, s.dims].any())
    shifted, dim = dict(weights.arrays), index.dims[0]
    shifted["pos_embed.W_pos"] = shifted["pos_embed.W_pos"].copy()
    shifted["pos_embed.W_pos"][:, dim] += 1e10
    for letter in "QKV":
        prefix = "blocks.0.attn."
        shifted[prefix + f"b_{letter}"] = (
            shifted[prefix + f"b_{letter}"] - 1e10 * shifted[prefix + f"W_{letter}"][:, dim]
        )
    near, far = margins(weights), margins(replace(weights, arrays=shifted))
    assert far.heads[-1].noise > 1e3 * near.heads[-1].noise
