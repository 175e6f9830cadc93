"""Built nets as the start of training: optimal from the first step, as far off as the noise says, and by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import at_once
from vitrify.claims.trials.problems import SMALL
from vitrify.constructions.catalogue import build
from vitrify.errors import FolderError, InputError
from vitrify.learn.distance import distance, probe
from vitrify.learn.models.built import BuiltFamily, smooth
from vitrify.learn.models.catalogue import make
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.net.folder import save
from vitrify.net.inference import log_probabilities
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import make as make_sandbox
from vitrify.spec.ngrams.model import NGramModel

P, Q = 0.2, 0.3


def chain(words: str = "01", length: int = 8) -> Weights[Any]:
    """The binary chain of these two words as a built bigram model, whose words never end."""
    after = {"<s>": (Q / (P + Q), P / (P + Q)), words[0]: (1 - P, P), words[1]: (Q, 1 - Q)}
    found: dict[tuple[str, ...], tuple[float, float]] = {("<s>",): (-99.0, 0.0), ("</s>",): (np.log10(0.2), 0.0)}
    for word in sorted(words):
        found[word,] = (float(np.log10(0.4)), 0.0)
    for context, shares in after.items():
        kept = {**dict(zip(words, shares, strict=True)), "</s>": 0.5}
        found |= {(context, w): (float(np.log10(p if w == "</s>" else p / 2)), 0.0) for w, p in kept.items()}
    return build(NGramModel.from_ngrams(found), max_length=length)


def test_a_built_net_is_optimal_from_the_start_and_noise_takes_it_away() -> None:
    """The end of sentence, which no row has, is left out; the distance to the construction is on the curve."""
    built, sandbox = chain(), make_sandbox("markov", {"p": P, "q": Q, "length": 6})
    runs = train(
        make("built", {"start": built}),
        sandbox,
        axes={"noise": [0.0, 0.1, 0.5]},
        recipe=Recipe(steps=4, batch=16, lr=1e-2, test_examples=64),
        probes={"distance": probe(built)},
    )
    first = [run.curve[0] for run in runs]
    assert abs(first[0]["excess"]) < 1e-5
    assert first[0]["kl"] < 1e-5
    assert first[0]["distance"] < 1e-6
    assert 1e-5 < first[1]["excess"] < first[2]["excess"]
    assert 0.02 < first[1]["distance"] < first[2]["distance"] / 3
    assert all(np.isfinite(point["distance"]) for run in runs for point in run.curve)
    for run in runs:
        assert run.last["distance"] == pytest.approx(distance(run.weights, built), rel=1e-3)
        np.testing.assert_array_equal(run.weights.arrays["blocks.0.attn.beta"], built.arrays["blocks.0.attn.beta"])
    assert runs[0].identity["model"] == {"name": "built", "net": built.digest, "noise": 0.0, "scratch": False}


def test_noise_has_the_size_of_each_array() -> None:
    built = chain()
    family = BuiltFamily(start=built, noise=0.25)
    first = jax.jit(lambda seed: family.first(built.architecture, jax.random.key(seed)))
    draws = [first(seed) for seed in range(200)]
    for name, array in built.arrays.items():
        if not name.endswith("beta"):
            spread = np.sqrt(np.mean([np.mean((np.asarray(draw[name]) - array) ** 2) for draw in draws]))
            assert spread == pytest.approx(0.25 * np.sqrt(np.mean(array**2)), rel=0.25, abs=1e-7)
            if not array.any():
                assert spread < 1e-7
    scratch = at_once.first(BuiltFamily(start=built, scratch=True), built.architecture, 0)
    assert {name: array.shape for name, array in scratch.items()} == {
        name: array.shape for name, array in built.arrays.items() if not name.endswith("beta")
    }
    assert distance(replace(built, arrays={**built.arrays, **scratch}), built) > 0.5


@pytest.mark.parametrize("scores", ["softmax", "log", "linear"])
def test_symbols_are_matched_by_name_and_scores_by_kind(scores: Any) -> None:
    """A net over 1 and 0, in this order, with another kind of score, gives the same log-probabilities."""
    sandbox = make_sandbox("markov", {"p": P, "q": Q, "length": 6})
    built = chain()
    net = built.architecture
    row = at_once.rows(sandbox, 0, "test", 0, 8)
    swapped = replace(net, inputs=(net.inputs[0], "1", "0"), output=replace(net.output, scores=scores))
    arrays = {**built.arrays, "embed.W_E": np.asarray(built.arrays["embed.W_E"])[[0, 2, 1]]}
    assert net.inputs[1:] == ("0", "1")
    family = BuiltFamily(start=Weights(swapped, arrays))
    found = at_once.logits(family, swapped, sandbox, arrays, row)
    raw = np.asarray(net.forward(built.arrays, np.pad(np.asarray(row.tokens) + 1, ((0, 0), (net.pads, 0)))))
    kept = raw[:, net.pads - 1 :, [net.output.symbols.index(word) for word in "01"]]
    if scores == "linear":
        kept = np.log(np.maximum(kept, 1e-30))
    np.testing.assert_allclose(np.asarray(found), kept, atol=1e-5)
    if scores == net.output.scores:
        best = np.asarray(jax.jit(jax.vmap(sandbox.optimal))(row))
        np.testing.assert_allclose(log_probabilities(replace(net.output, scores="softmax"), found), best, atol=1e-5)


def test_what_does_not_fit_is_refused_with_all_that_is_wrong(tmp_path: Path) -> None:
    save(chain("ab"), tmp_path / "net")
    family = make("built", {"folder": str(tmp_path / "net"), "noise": "0.5"})
    assert family.identity() == {"net": chain("ab").digest, "noise": 0.5, "scratch": False}
    with pytest.raises(InputError) as refused:
        family.architecture(make_sandbox("markov", {"length": 12}))
    for part in ("does not read '0'", "does not answer '1'", "at most 8 tokens, and sequences have 11"):
        assert part in str(refused.value)
    with pytest.raises(FolderError, match="is not a folder"):
        make("built", {"folder": str(tmp_path / "nothing")})
    with pytest.raises(InputError, match="noise must be 0 with scratch"):
        make("built", {"folder": str(tmp_path / "net"), "noise": 1, "scratch": True})


@pytest.mark.parametrize(
    "name", [name if name == "n-gram" else pytest.param(name, marks=pytest.mark.slow) for name in SMALL]
)
def test_every_problem_starts_at_the_optimum_of_its_sandbox(name: str) -> None:
    """What is left is what a softmax over scores that lead by 1 can't do: at most (answers - 1) e^-sharpness."""
    problem = SMALL[name]()
    family = BuiltFamily(start=problem.built)
    net = family.architecture(problem.sandbox)
    row = at_once.rows(problem.sandbox, 0, "test", 0, 64)
    arrays = {key: jax.numpy.asarray(array, "float32") for key, array in problem.built.arrays.items()}
    found = jax.jit(lambda arrays: jax.nn.log_softmax(family.logits(net, problem.sandbox, arrays, row)))(arrays)
    best = jax.jit(jax.vmap(problem.sandbox.optimal))(row)[:, -found.shape[1] :]
    asked = np.asarray(row.weight)[:, -found.shape[1] :] > 0
    apart = np.abs(np.exp(found) - np.exp(best)).max(axis=-1)[asked]
    assert apart.max() < (1e-5 if name == "n-gram" else 4e-3)


def test_smooth_nets_choose_by_softmax() -> None:
    """The router's scores are made larger too, and its best expert writes nearly all of what it wrote."""
    moe = SMALL["experts"]().built
    plain = replace(moe, arrays={**moe.arrays, "unembed.W_U": moe.arrays["unembed.W_U"] / 10})
    assert isinstance(moe.architecture, Transformer)
    block = moe.architecture.blocks[0]
    assert block.gate is not None
    assert block.gate.top == 1
    assert block.gate.over == "all"
    again = smooth(plain, 2.0)
    np.testing.assert_allclose(again.arrays["unembed.W_U"], 2 * plain.arrays["unembed.W_U"])
    router = "blocks.0.moe.router.W_out"
    np.testing.assert_array_equal(again.arrays[router], plain.arrays[router])  # it had a gate already
