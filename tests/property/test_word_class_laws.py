"""Laws of word-class languages over random patterns: the file, the window, the net."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from built import ATTENTIONS, mistakes
from examples import examples
from vitrify.constructions import word_memory as memory
from vitrify.constructions import word_register as register
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.word_classes import sizes, word_classes
from vitrify.kit import assemble
from vitrify.net.inference import encode, logits
from vitrify.net.weights import Weights
from vitrify.spec.languages.word_patterns import WordPatterns

EXAMPLES = settings(max_examples=examples(60), deadline=None)
attentions = st.sampled_from(ATTENTIONS)


@st.composite
def languages(draw: st.DrawFn) -> WordPatterns:
    """Up to three overlapping classes of up to three words, up to four patterns of up to four parts."""
    words = st.sampled_from("uvwxy")
    names = ["A", "B", "C"][: draw(st.integers(0, 3))]
    classes = {name: tuple(draw(st.lists(words, min_size=1, max_size=3, unique=True))) for name in names}
    part = st.sampled_from([*names, *names, '"u"', '"z"'])
    pattern = st.lists(part, min_size=1, max_size=4).map(tuple)
    patterns = draw(st.lists(pattern, min_size=1, max_size=4, unique=True))
    used = {part for pattern in patterns for part in pattern}
    return WordPatterns(tuple((name, held) for name, held in classes.items() if name in used), tuple(patterns))


@st.composite
def odd_words(draw: st.DrawFn) -> WordPatterns:
    """Any words and class names that a file can hold."""
    text = st.text(min_size=1, max_size=4)
    word = text.filter(lambda w: '"' not in w and not any(c.isspace() for c in w) and w not in ("<s>", "</s>"))
    name = word.filter(lambda w: "=" not in w and not w.startswith("#") and w.isprintable())
    names = draw(st.lists(name, max_size=3, unique=True))
    classes = tuple((n, tuple(draw(st.lists(word, min_size=1, max_size=3, unique=True)))) for n in names)
    quoted = word.map(lambda w: f'"{w}"')
    return WordPatterns(classes, ((*names, draw(quoted), draw(quoted)), (draw(quoted), *names)))


@EXAMPLES
@given(odd_words())
def test_read_after_write_is_the_identity(spec: WordPatterns) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec.write(Path(folder) / "spec.patterns")
        assert WordPatterns.read(Path(folder) / "spec.patterns") == spec


def is_exact(spec: WordPatterns, weights: Weights[Any]) -> bool:
    """Whether the net gives the right set after every beginning of a sentence; it must never lose a word."""
    lost, extra = mistakes(weights, spec)
    assert lost == 0
    return extra == 0


@EXAMPLES
@given(languages(), attentions, st.integers(-2, 2))
def test_the_net_is_exact_iff_its_window_is_large_enough(spec: WordPatterns, attention: Attention, more: int) -> None:
    n = max(2, spec.window() + more)
    weights = assemble(word_classes(spec, window=n, attention=attention))
    assert is_exact(spec, weights) == (n >= spec.window())
    assert not sizes(spec, window=n).problems(weights.sizes)
    assert weights.sizes.units == len(spec.contexts(n))


@EXAMPLES
@given(languages(), attentions, st.integers(-2, 2))
def test_memory_answers_the_same_from_one_number_per_word(spec: WordPatterns, attention: Attention, more: int) -> None:
    n = max(2, spec.window() + more)
    weights = assemble(memory.word_memory(spec, window=n, attention=attention))
    assert is_exact(spec, weights) == (n >= spec.window())
    assert not memory.sizes(spec, window=n).problems(weights.sizes)


@EXAMPLES
@given(languages(), st.integers(-2, 3))
def test_a_register_answers_as_the_heads_do_and_forgets_the_rest(spec: WordPatterns, more: int) -> None:
    n = max(2, spec.window() + more)
    weights = register.word_register(spec, window=n)
    assert is_exact(spec, weights) == (n >= spec.window())
    assert not register.sizes(spec, window=n).problems(weights.sizes)
    transition = weights.arrays["blocks.0.rec.W_A"]
    assert transition.sum() == np.count_nonzero(transition) == register.count_shifts(spec, n)
    assert not np.linalg.matrix_power(transition, min(n - 1, spec.longest)).any()
    prefixes = [encode(weights.architecture, prefix) for prefix in spec.prefixes()]
    heads = assemble(word_classes(spec, window=n, attention="hard"))
    for one, two in zip(logits(weights, prefixes), logits(heads, prefixes), strict=True):
        np.testing.assert_array_equal(one, two)
