"""NGramModel: its semantics on models small enough to check by hand, its trie, and everything it refuses."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from cases import each
from vitrify.errors import InputError, SpecError, SpecWarning
from vitrify.spec.ngrams.model import Level, NGramModel

Ngrams = dict[tuple[str, ...], tuple[float, float]]


def log10(value: float) -> float:
    return math.log10(value)


def small() -> Ngrams:
    """A model of order 3 that sums to one: p(a) = 1/2, p(b) = p(</s>) = 1/4."""
    return {
        ("<s>",): (-99.0, 0.0),
        ("a",): (log10(0.5), log10(0.8)),
        ("b",): (log10(0.25), 0.0),
        ("</s>",): (log10(0.25), 0.0),
        ("a", "b"): (log10(0.4), log10(0.5)),  # after a: b 0.4, others 0.8 × unigram
        ("a", "b", "</s>"): (log10(0.625), 0.0),  # after a b: </s> 0.625, others 0.5 × p(· | b)
    }


def test_probabilities_by_hand() -> None:
    model = NGramModel.from_ngrams(small())
    assert model.predicted == ("a", "b", "</s>")
    assert model.readable == ("a", "b")
    expected = {
        (): [0.5, 0.25, 0.25],
        ("b",): [0.5, 0.25, 0.25],
        ("a",): [0.4, 0.4, 0.2],
        ("a", "b"): [0.25, 0.125, 0.625],
        ("b", "b", "a"): [0.4, 0.4, 0.2],
        ("a", "a", "b"): [0.25, 0.125, 0.625],
        ("a", "b", "b"): [0.5, 0.25, 0.25],
    }
    table = np.exp(model.next_log_probs(list(expected)))
    np.testing.assert_allclose(table, list(expected.values()), rtol=1e-14)
    for history, row in expected.items():
        singles = [math.exp(model.log_prob(history, word)) for word in model.predicted]
        np.testing.assert_allclose(singles, row, rtol=1e-14)


def test_sentences_multiply() -> None:
    model = NGramModel.from_ngrams(small())
    assert math.exp(model.log_prob_of(["a", "b"], end=False)) == pytest.approx(0.5 * 0.4)
    assert math.exp(model.log_prob_of(["a", "b"])) == pytest.approx(0.5 * 0.4 * 0.625)
    assert math.exp(model.log_prob_of([])) == pytest.approx(0.25)
    assert model.log_prob_of([], end=False) == 0.0


def test_only_one_begin_marker_stands_before_a_history() -> None:
    """An n-gram after <s> applies to the first word of a sentence and to no other."""
    ngrams = small() | {("<s>",): (-99.0, log10(0.8)), ("<s>", "b"): (log10(0.4), 0.0)}
    model = NGramModel.from_ngrams(ngrams)
    np.testing.assert_allclose(np.exp(model.next_log_probs([[], ["b"]])), [[0.4, 0.4, 0.2], [0.5, 0.25, 0.25]])
    assert model.log_prob([], "b") == pytest.approx(math.log(0.4))
    assert model.log_prob(["b"], "b") == pytest.approx(math.log(0.25))


def test_three_ways_to_name_a_history_agree() -> None:
    model = NGramModel.from_ngrams(small())
    begin, a, b = model.ids(["<s>", "a", "b"])
    by_words = model.next_log_probs([[], ["a"], ["a", "b"], ["b", "a", "b"]])
    by_ids = model.next_log_probs(np.array([[-1, -1, -1], [-1, -1, a], [-1, a, b], [b, a, b]]))
    by_context = model.next_log_probs_of_contexts(np.array([[-1, begin], [begin, a], [a, b], [a, b]]))
    np.testing.assert_array_equal(by_words, by_ids)
    np.testing.assert_array_equal(by_words, by_context)


def test_dense_rows_come_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = NGramModel.from_ngrams(small())
    histories = [["a", "b"], ["b"], ["a"], [], ["b", "a"]]
    whole = model.next_log_probs(histories)
    monkeypatch.setattr("vitrify.spec.ngrams.model.MAX_TABLE_ENTRIES", 2 * len(model.predicted))
    np.testing.assert_array_equal(model.next_log_probs(histories), whole)


def test_no_histories_give_no_rows() -> None:
    model = NGramModel.from_ngrams(small())
    assert model.next_log_probs([]).shape == (0, 3)
    assert model.next_log_probs(np.zeros((2, 0), dtype=np.int64)).shape == (2, 3)


def test_unigram_model_forgets_its_history() -> None:
    model = NGramModel.from_ngrams({("</s>",): (log10(0.5), 0), ("a",): (log10(0.5), 0), ("<s>",): (-99, 0)})
    assert model.order == 1
    assert model.contexts() == ()
    np.testing.assert_allclose(np.exp(model.next_log_probs([[], ["a", "a"]])), 0.5)
    np.testing.assert_allclose(np.exp(model.next_log_probs_of_contexts(np.zeros((1, 0), dtype=int))), 0.5)


def test_the_trie() -> None:
    model = NGramModel.from_ngrams(dict(reversed(small().items())))
    assert model.vocabulary == ("</s>", "b", "a", "<s>")
    assert model.find(np.array([[2, 1], [1, 2], [-1, 2]])).tolist() == [0, -1, -1]
    assert model.words_of(2, np.array([0])).tolist() == [[2, 1, 0]]
    assert [place.tolist() for place in model.contexts()] == [[2], [0]]
    with pytest.raises(ValueError, match="read-only"):
        model.levels[0].log10_prob[0] = 0.0


def test_contexts_need_an_extension_or_a_weight_and_never_end_in_end() -> None:
    ngrams = small()
    ngrams["</s>",] = (log10(0.25), -3.0)  # nothing follows </s>, so its weight is never paid
    ngrams["b", "b"] = (log10(0.25), 0.0)  # neither extension nor weight
    ngrams["b", "a"] = (log10(0.5), log10(0.999999999))
    model = NGramModel.from_ngrams(ngrams)
    grams = [model.words_of(k, indices) for k, indices in enumerate(model.contexts())]
    listed = [[" ".join(model.vocabulary[word] for word in gram) for gram in level] for level in grams]
    assert listed == [["a", "b"], ["a b", "b a"]]


def test_equal_models_have_equal_hashes_and_one_line_to_show() -> None:
    one, two = NGramModel.from_ngrams(small()), NGramModel.from_ngrams(small())
    assert one == two
    assert hash(one) == hash(two)
    assert repr(one) == "NGramModel(order=3, words=4, ngrams=(4, 1, 1))"
    other = NGramModel.from_ngrams(small() | {("<s>",): (-98.0, 0.0)})
    assert one != other
    assert one != "a model"
    assert one == NGramModel.from_ngrams(small() | {("<s>",): (-99.0, -0.0)})
    assert hash(one) == hash(NGramModel.from_ngrams(small() | {("<s>",): (-99.0, -0.0)}))


# Words


@pytest.mark.parametrize("unknown", ["<unk>", "<UNK>"])
def test_unknown_words_become_unk(unknown: str) -> None:
    ngrams: Ngrams = {(word,): (log10(1 / 3), 0.0) for word in ("a", unknown, "</s>")}
    ngrams["<s>",] = (-99.0, 0.0)
    model = NGramModel.from_ngrams(ngrams)
    assert model.unk == unknown
    assert model.ids(["a", "zebra", unknown]).tolist() == [0, 1, 1]
    assert model.log_prob(["zebra"], "yak") == pytest.approx(math.log(1 / 3))


def test_without_unk_all_unknown_words_are_named() -> None:
    model = NGramModel.from_ngrams(small())
    with pytest.raises(InputError, match=r"unknown: 'zebra', 'yak'$"):
        model.next_log_probs([["a", "zebra"], ["yak", "zebra"]])


@pytest.mark.parametrize("marker", ["<s>", "</s>"])
def test_markers_may_not_stand_in_a_history(marker: str) -> None:
    model = NGramModel.from_ngrams(small())
    for history in ([marker, "a", "a", "a"], ["a", marker]):
        with pytest.raises(InputError, match=marker):
            model.log_prob(history, "a")
        with pytest.raises(InputError, match=marker):
            model.next_log_probs([["a"], history])
        with pytest.raises(InputError, match=marker):
            model.next_log_probs(model.ids(history)[None])
    with pytest.raises(InputError, match="never predicted"):
        model.log_prob(["a"], "<s>")


@each(
    ("contexts", "fragment"),
    [
        ([[0, 9]], "word ids must lie from -1 .* to 3"),
        ([[0, -2]], "word ids must lie"),
        ([[1, -1]], "only be on the left"),
        ([[1, 0]], "<s> may only be at the beginning"),
        ([[1, 3]], "</s> ends a sentence"),
        ([[1, 1, 1]], "order - 1 = 2 columns, got 3"),
        ([1, 1], "table of word ids"),
        ([[0.5, 1.0]], "table of word ids"),
    ],
)
def test_contexts_that_can_not_be_read(contexts: list[object], fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        NGramModel.from_ngrams(small()).next_log_probs_of_contexts(np.array(contexts))


# Rules


@each(
    ("changes", "fragments"),
    [
        ({("b", "a", "b"): (-1.0, 0.0)}, ["'b a b' needs its prefix 'b a' among the 2-grams"]),
        ({("a", "<s>"): (-1.0, 0.0)}, ["<s> may only be first in an n-gram, 'a <s>'"]),
        ({("</s>", "a"): (-1.0, 0.0)}, ["</s> may only be last in an n-gram, '</s> a'"]),
        ({("a",): (0.1, 0.0)}, ["probability of 'a' must be at most 0, got 0.1"]),
        ({("a",): (-math.inf, 0.0)}, ["probability of 'a' must be finite, got -inf; write -99"]),
        ({("a",): (math.nan, 0.0)}, ["probability of 'a' must be finite, got nan; write -99"]),
        ({("a",): (-1.0, math.inf)}, ["back-off weight of 'a' must be finite, got inf"]),
        ({("a", "b", "</s>"): (-1.0, -0.5)}, ["'a b </s>' is of the highest order", "got -0.5"]),
        ({("a", "c"): (-1.0, 0.0)}, ["every word of 'a c' must be among the unigrams, missing: 'c'"]),
        ({("x y",): (-1.0, 0.0)}, ["text without blanks", "'x y'"]),
        ({("",): (-1.0, 0.0)}, ["text without blanks", "''"]),
        ({("\ud800",): (-1.0, 0.0)}, ["UTF-8 can encode"]),
        ({"ab": (-1.0, 0.0)}, ["an n-gram is a tuple of words, got 'ab'"]),
        ({(): (-1.0, 0.0)}, ["an n-gram is a tuple of words, got ()"]),
        ({("a",): (log10(0.6), log10(0.8))}, ["must sum to 1", "normalize the model"]),
        ({("a", "b"): (log10(0.5), log10(0.5))}, ["after 'a' must sum to 1, they sum to 1.", "off by 0.1"]),
        ({("a",): (log10(0.5), 400.0)}, ["after 'a' must sum to 1, they sum to inf, off by inf"]),
        ({("a",): (log10(0.5), 1e6)}, ["after 'a' must sum to 1, they sum to inf"]),
    ],
)
def test_broken_rules(changes: Ngrams, fragments: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        NGramModel.from_ngrams(small() | changes)
    assert len(caught.value.problems) == 1
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_all_problems_at_once() -> None:
    ngrams = small() | {
        ("a",): (0.5, 0.0),
        ("b", "a", "b"): (-math.inf, 0.0),
        ("b", "a", "a"): (-1.0, 0.0),
        ("</s>", "a"): (-1.0, 0.0),
        ("</s>", "a", "b"): (-1.0, 2.0),
    }
    del ngrams["<s>",]
    with pytest.raises(SpecError) as caught:
        NGramModel.from_ngrams(ngrams)
    messages = sorted(str(problem).split(",")[0] for problem in caught.value.problems)
    assert messages == [
        "'</s> a b' is of the highest order",
        "'b a a' needs its prefix 'b a' among the 2-grams",
        "</s> may only be last in an n-gram",
        "</s> may only be last in an n-gram",
        "<s> must be among the unigrams",
        "the log10 probability of 'a' must be at most 0",
        "the log10 probability of 'b a b' must be finite",
    ]


@pytest.mark.parametrize("missing", ["<s>", "</s>"])
def test_both_markers_are_needed(missing: str) -> None:
    ngrams: Ngrams = {(word,): (-0.5, 0.0) for word in ("<s>", "a", "</s>") if word != missing}
    with pytest.raises(SpecError, match=f"^{missing} must be among the unigrams$"):
        NGramModel.from_ngrams(ngrams)


def test_an_empty_model_is_refused() -> None:
    with pytest.raises(SpecError, match="this one is empty"):
        NGramModel.from_ngrams({})


def level(parent: list[int], word: list[int]) -> Level:
    return Level(np.array(parent), np.array(word), np.full(len(word), -0.3), np.zeros(len(word)))


@each(
    ("levels", "fragment"),
    [
        ([level([0, 0], [1, 0])], "must be sorted"),
        ([level([0, 0], [0, 0])], "each listed once"),
        ([level([0], [0])], "2 words, but 1 unigrams"),
        ([level([0, 0], [0, 1]), level([2], [1])], "must be indices in the level below"),
        ([level([0, 0], [0, 1]), level([0], [2])], "must be indices in the level below"),
        ([level([0, 0], [0, 1]), level([], [])], "no 2-grams; leave their level out"),
        ([level([0], [0, 1])], "vectors of one length"),
        ([], "empty"),
    ],
)
def test_arrays_that_are_no_trie(levels: list[Level], fragment: str) -> None:
    with pytest.raises(SpecError, match=fragment):
        NGramModel(("<s>", "</s>"), tuple(levels))


def test_a_vocabulary_lists_each_word_once() -> None:
    with pytest.raises(SpecError, match="list each word once"):
        NGramModel(("<s>", "<s>"), (level([0, 0], [0, 1]),))


# Sums


def test_the_defect_is_measured_and_placed() -> None:
    defect, where = NGramModel.from_ngrams(small()).normalization_defect()
    assert defect < 1e-15
    with pytest.warns(SpecWarning, match=r"after 'a b' must sum to 1.* off by 0\.0005"):
        model = NGramModel.from_ngrams(small() | {("a", "b", "</s>"): (log10(0.6255), 0.0)})
    defect, where = model.normalization_defect()
    assert where == ("a", "b")
    assert defect == pytest.approx(5e-4)


@pytest.mark.parametrize(("off", "warned"), [(9e-7, False), (1.1e-6, True), (9.9e-4, True)])
def test_small_defects_are_silent_or_warned_of(off: float, warned: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        NGramModel.from_ngrams(small() | {("<s>", "b"): (log10(0.25 + off), 0.0)})
    assert [str(w.message) for w in caught if "after '<s>'" in str(w.message)] == [str(w.message) for w in caught]
    assert len(caught) == warned


def test_a_defect_of_the_unigrams_is_named_as_such() -> None:
    with pytest.raises(SpecError, match=r"of the unigrams must sum to 1, they sum to 0\.9"):
        NGramModel.from_ngrams({("<s>",): (-1.0, 0.0), ("</s>",): (log10(0.9), 0.0)})


def test_sums_of_contexts_whose_suffix_is_not_listed() -> None:
    """The sum after 'a b a' needs p(· | b a), and neither 'b a' nor its extensions are listed."""
    ngrams: Ngrams = {("<s>",): (-99.0, 0.0), **{(word,): (log10(0.25), 0.0) for word in ("a", "b", "c", "</s>")}}
    ngrams["a",] = (log10(0.25), log10(0.8))
    ngrams["a", "c"] = (log10(0.4), 0.0)
    ngrams["a", "b"] = (log10(0.2), 0.0)
    ngrams["a", "b", "a"] = (log10(0.25), log10(0.5))
    ngrams["a", "b", "a", "c"] = (log10(0.7), 0.0)
    model = NGramModel.from_ngrams(ngrams)
    assert model.normalization_defect()[0] < 1e-15
    np.testing.assert_allclose(np.exp(model.next_log_probs([["a", "b", "a"]])), [[0.1, 0.1, 0.7, 0.1]])
    ngrams["a", "b", "a", "c"] = (log10(0.6), 0.0)
    with pytest.raises(SpecError, match=r"after 'a b a' must sum to 1, they sum to 0\.\d+, off by 0\.1"):
        NGramModel.from_ngrams(ngrams)


def test_the_defect_agrees_with_summing_all_words() -> None:
    """Random back-off weights make random sums; the fast formula must find the worst of them."""
    rng = np.random.default_rng(5)
    words = ["a", "b", "c", "d", "</s>"]
    for _ in range(20):
        ngrams: Ngrams = {("<s>",): (-99.0, 1e-5 * rng.normal())}
        ngrams |= {(word,): (log10(0.2), 1e-5 * rng.normal()) for word in words}
        frontier: list[tuple[str, ...]] = [("<s>",), ("a",), ("b",), ("c",)]
        for length in (2, 3, 4):
            grams = [(*c, w) for c in frontier for w in words if rng.random() < 0.4]
            ngrams |= {gram: (log10(0.2), 1e-5 * rng.normal() * (length < 4)) for gram in grams}
            frontier = [gram for gram in grams if gram[-1] != "</s>"]
        with pytest.warns(SpecWarning, match="must sum to 1"):
            model = NGramModel.from_ngrams(ngrams)
        worst, at = 0.0, ()
        for k, indices in enumerate(model.contexts()):
            padded = np.full((len(indices), model.order - 1), -1)
            padded[:, model.order - 2 - k :] = model.words_of(k, indices)
            off = np.abs(np.exp(model.next_log_probs_of_contexts(padded)).sum(axis=1) - 1)
            if len(off) and off.max() > worst:
                worst = off.max()
                at = tuple(model.vocabulary[w] for w in model.words_of(k, indices[[off.argmax()]])[0])
        defect, where = model.normalization_defect()
        assert where == at
        assert defect == pytest.approx(worst, abs=1e-12)
