r"""Perplexity of a language model on a text.

Each sentence of $n$ words has $n + 1$ tokens: its words and `</s>`. With $N$ tokens in all and $p_i$ the probability of
token $i$ after `<s>` and the tokens before it in its sentence, the perplexity is $\exp(-\frac1N \sum_i \ln p_i)$.
Out-of-vocabulary (OOV) words are read as `<unk>`; the second perplexity leaves their tokens out of the sum and of $N$.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Floats
from vitrify.errors import InputError
from vitrify.net.architecture import Architecture
from vitrify.net.inference import UNKNOWN, encode, encode_input, log_probabilities, logits_of_inputs
from vitrify.net.weights import Weights, has_positions
from vitrify.spec.ngrams.model import BEGIN, END, NGramModel


@dataclass(frozen=True)
class Perplexity:
    """Counts of a text, its log-probability under a model, and the two perplexities."""

    sentences: int
    tokens: int
    oov: int
    log10_probability: float
    perplexity_including_oov: float
    perplexity_excluding_oov: float


def perplexity_of(
    model: NGramModel | Weights[Architecture],
    sentences: Sequence[Sequence[str]],
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Perplexity:
    """Return the perplexity of an n-gram model, or of a network with next-token probabilities, on sentences."""
    if not sentences:
        raise InputError("the text has no sentences: every line that is not blank is one")
    if markers := {BEGIN, END} & {word for words in sentences for word in words}:
        raise InputError(f"the text must not contain {' and '.join(sorted(markers))}: they are added to each sentence")
    words = model.predicted if isinstance(model, NGramModel) else model.architecture.output.symbols
    log_probs: list[Floats] = []
    for each in _scored(model, sentences):
        log_probs.append(each)
        progress(len(log_probs), len(sentences))
    vocabulary = {*words} - {*UNKNOWN}
    known = np.array([word in vocabulary for sentence in sentences for word in (*sentence, END)])
    every = np.concatenate(log_probs)
    with np.errstate(over="ignore"):  # a token of probability 0
        both = [float(np.exp(-part.mean())) for part in (every, every[known])]
    return Perplexity(len(sentences), len(every), int((~known).sum()), float(every.sum() / np.log(10)), *both)


def _scored(net: NGramModel | Weights[Architecture], sentences: Sequence[Sequence[str]]) -> Iterator[Floats]:
    """Yield the log-probabilities of the tokens of each sentence, the last of them `</s>`."""
    if isinstance(net, NGramModel):
        net.ids(word for words in sentences for word in words)  # raises an error that names all unknown words
        yield from (net.log_probs_along([*words, END]) for words in sentences)
        return
    output = net.architecture.output
    if not has_positions(net) or output.kind != "lm" or END not in output.symbols:
        raise InputError(f"perplexity needs a network that predicts words and {END}, built from an n-gram model")
    column = {symbol: index for index, symbol in enumerate(output.symbols)}
    inputs = [encode_input(net, words) for words in sentences]
    for words, logits in zip(sentences, logits_of_inputs(net, inputs), strict=True):
        names = [*(net.architecture.inputs[index] for index in encode(net.architecture, words)), END]
        yield log_probabilities(output, logits)[np.arange(len(names)), [column[name] for name in names]]
