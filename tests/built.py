"""Built nets for tests, and what they must answer, worked out without vitrify's own oracles."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.arpa_evaluator import ArpaEvaluator
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.ngram import Code, Variant
from vitrify.net.inference import batch_logits, encode, log_probabilities, logits
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.geometry.scene import Scene, random_scene
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.grammars.rules import descendants, grouped
from vitrify.spec.languages.word_patterns import WordPatterns
from vitrify.spec.ngrams.model import NGramModel

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

ATTENTIONS: tuple[Attention, ...] = ("softmax", "sparsemax", "hard")
SHAPES: tuple[Variant, ...] = ("heads", "layers", "single")
CODES: tuple[Code, ...] = ("onehot", "bits")
PAIRS = 1 << 16  # of positions of a word, over all words that are run together: what fits a cache

PROMISED: dict[Attention, float] = {"softmax": 1e-9, "sparsemax": 1e-12, "hard": 1e-12}
"""The largest difference of two probabilities that each kind of attention is allowed."""


def all_words(letters: int, length: int) -> Ids:
    """All words of one length, as input ids from 1; their prefixes are all shorter words."""
    return np.indices((letters,) * length).reshape(length, letters**length).T.astype(np.int64) + 1


def random_words(letters: int, length: int, count: int, seed: int) -> Ids:
    """Random words of one length, as input ids from 1."""
    return np.random.default_rng(seed).integers(1, letters + 1, size=(count, length))


def answers(weights: Weights, words: Ids) -> Floats:
    """Logits [word, prefix, out]: row t of a word is read after its first t letters."""
    net = weights.architecture
    tokens = np.concatenate([np.zeros((len(words), net.pads), dtype=np.int64), words], axis=1)
    step = max(1, PAIRS // tokens.shape[1] ** 2)
    parts = [batch_logits(weights, tokens[at : at + step]) for at in range(0, len(tokens), step)]
    return np.concatenate(parts)[:, net.pads - 1 :]


def probabilities(weights: Weights, words: Ids) -> Floats:
    """Next-symbol probabilities [word, prefix, out] of a net."""
    found: Floats = np.exp(log_probabilities(weights.architecture.output, answers(weights, words)))
    return found


def states(weights: Weights, words: Ids) -> Ids:
    """The likeliest output symbol [word, prefix] of a net."""
    found: Ids = answers(weights, words).argmax(axis=-1)
    return found


def walked(automaton: Automaton, words: Ids) -> Ids:
    """The states that an automaton passes through, from its transition table and nothing else."""
    table = np.array(automaton.transitions)
    path = [np.full(len(words), automaton.initial)]
    for letters in words.T:
        path.append(table[path[-1], letters - 1])
    return np.stack(path, axis=1)


def evaluator(model: NGramModel) -> ArpaEvaluator:
    """The independent evaluator, given nothing but the model's ARPA text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.arpa"
        model.write(path)
        return ArpaEvaluator(path)


def expected(model: NGramModel, words: Ids) -> Floats:
    """Next-symbol probabilities [word, prefix, out] by the independent evaluator; each context is asked about once."""
    arpa, width = evaluator(model), model.order - 1
    readable = [word for word in model.vocabulary if word not in ("<s>", "</s>")]
    predicted = [word for word in model.vocabulary if word != "<s>"]
    padded = np.concatenate([np.zeros((len(words), model.order), dtype=np.int64), words], axis=1)
    numbers = np.zeros((len(words), words.shape[1] + 1), dtype=np.int64)
    for back in range(width):
        here = padded[:, model.order - 1 - back : padded.shape[1] - back]
        numbers += here * (len(readable) + 1) ** back
    distinct, place = np.unique(numbers, return_inverse=True)
    rows = []
    for number in distinct.tolist():
        digits = [number // (len(readable) + 1) ** back % (len(readable) + 1) for back in range(width)]
        context = [readable[digit - 1] for digit in reversed(digits) if digit]
        history = context if len(context) == width else ["<s>", *context]
        rows.append([np.exp(arpa.log_prob(history, word)) for word in predicted])
    return np.array(rows)[place.reshape(numbers.shape)]


def mistakes(weights: Weights[Any], spec: WordPatterns) -> tuple[int, int]:
    """How many beginnings of sentences lose a next word, and how many get one too many."""
    net, prefixes = weights.architecture, list(spec.prefixes())
    lost = extra = 0
    for prefix, rows in zip(prefixes, logits(weights, [encode(net, prefix) for prefix in prefixes]), strict=True):
        found = {symbol for symbol, logit in zip(net.output.symbols, rows[-1], strict=True) if logit > 0}
        lost += not spec.next_words(prefix) <= found
        extra += not found <= spec.next_words(prefix)
    return lost, extra


def listed_contexts(ngrams: dict[tuple[str, ...], tuple[float, float]]) -> set[tuple[str, ...]]:
    """The contexts that an ARPA file lists: n-grams with an extension or a back-off weight, none ending in `</s>`."""
    extended = {gram[:-1] for gram in ngrams if len(gram) > 1}
    order = max(map(len, ngrams))
    weighty = {gram for gram, (_, backoff) in ngrams.items() if len(gram) < order and backoff != 0}
    return {gram for gram in extended | weighty if gram[-1] != "</s>"}


def rooted(grammar: Grammar, name: str) -> Grammar:
    """What a nonterminal derives, as a grammar of its own."""
    kept = set(descendants(name, grouped(grammar.rules)))
    return Grammar(name, tuple(rule for rule in grammar.rules if rule.lhs in kept))


def small_scene(seed: int, composites: int = 0) -> Scene:
    """A random scene of images of 12×12 pixels."""
    return random_scene(seed, composites=composites, features=4, size=3, classes=3, per_class=2, image=12)
