"""What is proved of a format holds in runs that round every operation; position codes end where they should."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from cases import each, in_turn
from samples import ENTRIES, SAMPLES, built
from vitrify.certification import certify
from vitrify.certification.margins.net import margins
from vitrify.certification.margins.proof import Proof
from vitrify.certification.margins.scores import Scores
from vitrify.certification.margins.values import Stretch
from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.certification.precision.arithmetic import agreed_length, arithmetic_report, proved_length
from vitrify.certification.precision.formats import FORMATS
from vitrify.certification.precision.narrow import narrowed
from vitrify.constructions.catalogue import Attention, build
from vitrify.errors import InputError
from vitrify.kit.positions import CodeName
from vitrify.net.architecture import Output
from vitrify.net.labels import Labels, SpaceLabel
from vitrify.net.spaces import Reals
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights
from vitrify.report import wording
from vitrify.spec.geometry.maxout import zigzag
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.ngrams.families import random_ngram

NARROW = ("float16", "bfloat16", "float32")
QUICK = ("heads", "layers", "single", "cascade", "log-depth", "counting", "temporal", "shapes", "dyck-recognizer")
SLOW = (
    *("commutative", "program", "one-pass", "auto", "spans", "unambiguous", "plane", "classes", "k-hop", "match2"),
    *("estimate-heads", "circuit", "turing", "states-aloud", "fitted", "hebbian", "least-squares", "mlp-memory"),
)
Ids = Any


def some_words(weights: Weights[Any], spec: object, count: int) -> list[list[int]]:
    net, rng = weights.architecture, np.random.default_rng(0)
    longest = oracle_for(spec, net).longest or net.max_length
    language = oracle_for(spec, net).language
    if language is not None:
        return [language.draw(rng)[:longest] for _ in range(count)]
    return [rng.integers(1, len(net.inputs), size=longest).tolist() for _ in range(count if len(net.inputs) > 1 else 0)]


def logits(weights: Weights[Any], word: Sequence[int]) -> np.ndarray:
    net = weights.architecture
    tokens = np.array([[0] * net.pads + list(word)])
    found: np.ndarray = np.asarray(net.forward(weights.arrays, tokens))[0, net.pads :]
    return found


def sound(weights: Weights[Any], proof: Proof, name: str, words: Sequence[Sequence[int]]) -> float:
    """Check a proof against runs in its format; how large a share of its bound they reach."""
    output, worst = weights.architecture.output, 0.0
    narrow = narrowed(weights, FORMATS[name])
    wide = narrowed(weights, FORMATS["float64"])
    for word in words:
        true, found = logits(wide, word), logits(narrow, word)
        if not len(true):
            continue
        assert proof.error is not None
        off = np.abs(found - true).max()
        assert off <= 2 * proof.error  # both are within it of the ideal
        worst = max(worst, off / proof.error if proof.error else 0.0)
        if output.kind == "next":
            assert ((found > 0) == (true > 0)).all()
        elif output.kind != "values":
            assert (found.argmax(-1) == true.argmax(-1)).all()
    return worst


def check_shape(shape: str, attention: Attention, *, all_samples: bool) -> None:
    entry = ENTRIES[shape]
    specs = SAMPLES[entry.kind]
    specs = specs if all_samples else [specs[2] if shape == "shapes" else specs[0]]  # the first grammar takes seconds
    for spec in specs:
        weights = built(entry, spec, attention)
        if weights is None:
            continue
        words = some_words(weights, spec, 3)
        oracle = oracle_for(spec, weights.architecture)
        language, longest = oracle.language, oracle.longest
        for name in NARROW:
            proof = margins(weights, language=language is not None, longest=longest, arithmetic=FORMATS[name])
            if proof.holds:
                sound(weights, proof, name, words)


@pytest.mark.long
@pytest.mark.parametrize("attention", ["softmax", "sparsemax", "hard"])
@pytest.mark.parametrize("shape", QUICK)
def test_what_is_proved_holds_in_runs(shape: str, attention: Attention) -> None:
    check_shape(shape, attention, all_samples=False)


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["softmax", "sparsemax", "hard"])
@pytest.mark.parametrize("shape", [*QUICK, *SLOW])
def test_so_it_does_for_all_samples(shape: str, attention: Attention) -> None:
    check_shape(shape, attention, all_samples=True)


STEPS = {
    "embedding": ("embed.W_E", "pos_embed.W_pos"),
    "values": ("blocks.0.attn.W_V", "blocks.0.attn.b_V"),
    "out": ("blocks.0.attn.W_O",),
    "units": ("blocks.0.mlp.W_in", "blocks.0.mlp.b_in"),
    "written": ("blocks.0.mlp.W_out", "blocks.0.mlp.b_out"),
    "logits": ("unembed.W_U", "unembed.b_U"),
}


def random_net(seed: int, step: str, name: str) -> Weights:
    """A net in which one step has random weights and all others round nothing; its two answers are nearly tied."""
    rng = np.random.default_rng(seed)
    head, units = step in ("values", "out"), step in ("units", "written")
    blocks = (Block((Head("softmax", "causal", window=1),) * head, 1, 1, 2 * units),) if head or units else ()
    net = Transformer(("<s>", "a"), Output("class", ("x", "y")), 1, 3, blocks)
    arrays = {key: np.zeros(shape) for key, shape in net.shapes().items()}
    arrays["embed.W_E"][1, 0] = FORMATS[name].stored(rng.uniform(1, 2))
    last = 1 if blocks else 0
    arrays["unembed.W_U"][last, 0] = 1.0
    if head:
        arrays["blocks.0.attn.W_V"][0, 0, 0] = arrays["blocks.0.attn.W_O"][0, 0, 1] = 1.0
    elif units:
        arrays["blocks.0.mlp.W_in"][0, 0] = arrays["blocks.0.mlp.W_out"][0, 1] = 1.0
    for key in STEPS[step]:
        where = arrays[key] != 0
        if key.endswith(("b_V", "b_in")):
            where[...] = True
        elif key.endswith(("b_out", "W_pos")):
            where[..., 1 if units else 0] = True
        arrays[key][where] = rng.uniform(1, 2, size=where.sum())
    spaces = (SpaceLabel("made", Reals(("a",), -99.0, 99.0), (1,), 1 if head else 2, 9),) if blocks else ()
    weights = Weights(net, arrays, Labels(spaces=spaces))
    lead = FORMATS[name].roundoff * 2.0 ** rng.uniform(-1, 5)
    arrays["unembed.b_U"][1] = FORMATS[name].stored(logits(weights, [1])[0, 0] * (1 - lead))
    return Weights(net, arrays, weights.labels)


FIRST_TURN, *TURNS = in_turn(STEPS, NARROW)
STEP_AND_FORMAT = [*FIRST_TURN, *(pytest.param(*case, marks=pytest.mark.slow) for turn in TURNS for case in turn)]


@pytest.mark.long
@pytest.mark.parametrize(("step", "name"), STEP_AND_FORMAT)
def test_nets_near_a_tie_are_not_proved_to_keep_it(step: str, name: str) -> None:
    """Each step reaches a third of its bound: one a quarter as large would prove answers that change."""
    kind, proved, reached = FORMATS[name], 0, 0.0
    for seed in range(60):
        weights = random_net(seed, step, name)
        proof = margins(weights, arithmetic=kind)
        proved += proof.holds
        if proof.holds:
            sound(weights, proof, name, [[1]])
        assert proof.error is not None
        off = np.abs(logits(narrowed(weights, kind), [1]) - logits(weights, [1])).max()
        assert off <= proof.error
        reached = max(reached, off / proof.error)
    assert 10 < proved < 60
    assert reached > 1 / 3


def unlucky(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers [triple, 3] of whose products the format makes far too much, and some of which it makes far too little.

    The products are rounded as a score is that comes from an embedding, a key matrix and the bias of a query.
    """
    stored = FORMATS[name].stored
    x, w, b = np.random.default_rng(0).uniform(1, 2, size=(3, 1_000_000))
    off = stored(stored(b) * stored(stored(x) * stored(w))) / (x * w * b) - 1
    order, triples = np.argsort(off), np.stack([x, w, b], axis=1)
    return triples[order[-20_000:]], triples[order[:20_000]]


def scoring_net(pad: np.ndarray, token: np.ndarray) -> Weights:
    """A hard head that tells the token from the pad by the products of three numbers each."""
    block = Block((Head("hard", "causal", ties="left"),), 2, 1)
    net = Transformer(("<s>", "a"), Output("class", ("pad", "token")), 1, 4, (block,))
    arrays, attn = {key: np.zeros(shape) for key, shape in net.shapes().items()}, "blocks.0.attn."
    for feature, triple in enumerate((pad, token)):
        arrays["embed.W_E"][feature, feature] = triple[0]
        arrays[attn + "W_K"][0, feature, feature] = triple[1]
        arrays[attn + "b_Q"][0, feature] = triple[2]
    arrays["embed.W_E"][1, 2] = arrays[attn + "W_V"][0, 2, 0] = arrays[attn + "W_O"][0, 0, 3] = 1.0
    arrays[attn + "beta"][0] = 1.0
    arrays["unembed.W_U"][3, 1], arrays["unembed.b_U"][0] = 1.0, 0.5
    return Weights(net, arrays, Labels((SpaceLabel("read", Reals(("a",), 0.0, 1.0), (3,), 1, 9),)))


@pytest.mark.long
@pytest.mark.parametrize("name", NARROW)
def test_scores_near_a_tie_are_not_proved_to_be_told_apart(name: str) -> None:
    kind, (high, low) = FORMATS[name], unlucky(name)
    high, low = (triples[np.argsort(triples.prod(axis=1))] for triples in (high, low))
    proved, wrong = [], []
    for wanted in kind.roundoff * 2.0 ** np.arange(1, 5, 0.25):
        at = np.searchsorted(low.prod(axis=1), high.prod(axis=1) * (1 + wanted)).clip(0, len(low) - 1)
        leads = low[at].prod(axis=1) / high.prod(axis=1) - 1
        best = int(np.abs(leads - wanted).argmin())
        weights, lead = scoring_net(high[best], low[at[best]]), float(leads[best])
        assert logits(weights, [1]).argmax() == 1
        if margins(weights, arithmetic=kind).holds:
            proved.append(lead)
        if logits(narrowed(weights, kind), [1]).argmax() != 1:
            wrong.append(lead)
    assert max(wrong) < min(proved) < 4 * max(wrong)  # a bound a quarter as large would be noticed


@pytest.mark.long
@each("name", NARROW)
@each("inexact", ["query", "key", "beta"])
def test_the_error_of_a_score_is_bounded_and_not_far(inexact: str, name: str) -> None:
    kind, reached = FORMATS[name], 0.0
    for seed in range(100):
        x, odd = np.random.default_rng(seed).uniform(1, 2, size=2)
        x = float(kind.stored(x))
        part = {"W_Q": np.ones((1, 1)), "W_K": np.ones((1, 1)), "b_Q": np.zeros(1), "b_K": np.zeros(1), "beta": 1.0}
        part |= {"beta": odd} if inexact == "beta" else {f"W_{inexact[0].upper()}": np.array([[odd]])}
        stretch = Stretch("tokens", 1, np.array([[x]]), (), np.zeros(1))
        found = Scores(Head(), {**part, "b_rel": None}, stretch, [stretch], np.ones((1, 1)), np.zeros(1), kind)
        stored = kind.stored
        score = stored(stored(stored(x * stored(odd))) * x)
        off = abs(float(score) - x * odd * x)
        assert off <= found.noise <= found.delta
        reached = max(reached, off / found.noise)
    assert reached > 1 / 3


@pytest.mark.long
@pytest.mark.parametrize("name", NARROW)
def test_units_near_zero_may_be_on_either_side(name: str) -> None:
    kind, changed = FORMATS[name], 0
    for seed in range(100):
        x, w = np.random.default_rng(seed).uniform(1, 2, size=2)
        net = Transformer(("<s>", "a"), Output("class", ("x", "y")), 1, 2, (Block((), 0, 0, 1),))
        arrays = {key: np.zeros(shape) for key, shape in net.shapes().items()}
        arrays["embed.W_E"][1, 0], arrays["blocks.0.mlp.W_in"][0, 0] = kind.stored(x), w
        arrays["blocks.0.mlp.b_in"][0] = -kind.stored(x) * w * (1 + kind.roundoff / 16)
        arrays["blocks.0.mlp.W_out"][0, 1] = arrays["unembed.W_U"][1, 0] = 1.0
        arrays["unembed.b_U"][1] = kind.roundoff / 8
        weights = Weights(net, arrays, Labels((SpaceLabel("made", Reals(("a",), 0.0, 9.0), (1,), 2, 9),)))
        assert logits(weights, [1]).argmax() == 1
        assert not margins(weights, arithmetic=kind).holds
        changed += int(logits(narrowed(weights, kind), [1]).argmax() != 1)
    assert changed > 0


def position_net(code: CodeName, length: int) -> Weights[Any]:
    return build(random_ngram(2, 3, seed=1), "heads", attention="softmax", max_length=length, positions=code)


def some_ids(length: int) -> list[Ids]:
    return [np.random.default_rng(0).integers(1, 3, size=(4, length))]


@pytest.mark.slow
def test_position_codes_end_where_they_should() -> None:
    """The theory: κu = 1/4 at T = 81 in float32 and at 65,536 in float64 for the square-root code; never for dyadic."""
    assert margins(position_net("sqrt", 10_000), arithmetic=FORMATS["float64"]).holds
    assert margins(position_net("dyadic", 4096), arithmetic=FORMATS["float32"]).holds
    float32 = FORMATS["float32"]
    assert margins(position_net("sqrt", 33), arithmetic=float32).holds
    assert not margins(position_net("sqrt", 36), arithmetic=float32).holds
    assert agreed_length(position_net("sqrt", 124), float32, some_ids(124)) == (124, False)
    assert agreed_length(position_net("sqrt", 128), float32, some_ids(128)) == (1, True)
    assert agreed_length(position_net("dyadic", 1024), float32, some_ids(1024)) == (1024, False)


@pytest.mark.slow
@each("code", ["dyadic", "quadratic", "sqrt"])
@each("length", [9, 70])
def test_no_more_is_proved_than_is_measured(code: CodeName, length: int) -> None:
    report = arithmetic_report(position_net(code, length), some_ids(length))
    assert [found.name for found in report.formats] == [*NARROW, "float64"]
    assert report.formats[-1].proved == report.formats[-1].kept == length
    for found in report.formats:
        assert found.kept is not None
        assert (found.proved or 0) <= found.kept
        assert found.broken or found.kept == length
    if (code, length) == ("quadratic", 70):
        assert [found.broken for found in report.formats] == [True, True, False, False]
    smallest = {"dyadic": "float16", "quadratic": "float32", "sqrt": "float32" if length == 9 else "float64"}
    assert report.smallest == smallest[code]
    assert report.to_json()["smallest"] == report.smallest
    assert "seconds" not in report.to_json()


def test_the_proved_length_is_the_last_that_can_be_proved() -> None:
    weights, kind = position_net("quadratic", 60), FORMATS["float16"]
    proved, error, reason = proved_length(weights, kind, 60)
    assert proved is not None
    assert 1 < proved < 60
    assert margins(weights, longest=proved, arithmetic=kind).error == error
    assert margins(weights, longest=proved + 1, arithmetic=kind).reason == reason


def test_weights_that_the_format_rounds_count() -> None:
    """Half of the answers hang on a weight that float16 can't hold: the run says otherwise, the proof knows."""
    net = Transformer(("<s>", "a"), Output("class", ("x", "y")), 1, 1)
    arrays = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["embed.W_E"][1] = 1.0
    arrays["unembed.W_U"][0] = 1.0, 1.0 + 2.0**-12
    weights = Weights(net, arrays)
    assert margins(weights, arithmetic=FORMATS["float32"]).holds
    assert "have no margin" in (margins(weights, arithmetic=FORMATS["float16"]).reason or "")
    assert agreed_length(weights, FORMATS["float16"], [np.array([[1]])]) == (0, True)
    assert agreed_length(weights, FORMATS["float32"], [np.array([[1]])]) == (1, False)


def test_numbers_are_kept_within_what_the_output_allows() -> None:
    net = Transformer(("<s>", "a"), Output("values", ("x",), error=1e-4), 1, 1)
    arrays = {name: np.full(shape, 1 / 3) for name, shape in net.shapes().items()}
    weights = Weights(net, arrays)
    for name, holds in (("float16", False), ("bfloat16", False), ("float32", True)):
        assert margins(weights, arithmetic=FORMATS[name]).holds is holds
        assert agreed_length(weights, FORMATS[name], [np.array([[1]])]) == ((1, False) if holds else (0, True))


def test_what_overflows_later_does_not_spoil_what_was_before() -> None:
    weights, kind = position_net("quadratic", 300), FORMATS["float16"]  # squares from 256 on are beyond float16
    kept, broken = agreed_length(weights, kind, some_ids(300))
    assert broken
    assert kept is not None
    assert kept >= (proved_length(weights, kind, 300)[0] or 0) >= 1


def test_a_certificate_tells_and_points_are_refused() -> None:
    formula = Formula.from_text("alphabet: a b\nlength: 40\na S b")
    evidence = certify(build(formula, "temporal", max_length=40), formula, prove=True, arithmetic=True)
    assert evidence.proof is not None
    report = evidence.proof["arithmetic"]
    assert report["smallest"] == "float32"
    assert "float32 is the smallest format that is proved to keep" in wording.proof(evidence.proof)[-1]
    assert [found["proved"] for found in report["formats"]][2:] == [40, 40]
    with pytest.raises(InputError, match="networks that read words"):
        certify(build(zigzag(3, 2)), zigzag(3, 2), prove=True, arithmetic=True)


def test_what_is_not_proved_is_measured_all_the_same() -> None:
    entry = ENTRIES["composition"]
    spec = SAMPLES[entry.kind][0]
    weights = built(entry, spec, "softmax")
    assert weights is not None
    evidence = certify(weights, spec, prove=True, arithmetic=True, work=1e6)
    assert evidence.proof is not None
    formats = evidence.proof["arithmetic"]["formats"]
    assert {found["proved"] for found in formats} == {None}
    assert {found["reason"] for found in formats} == {evidence.proof["reason"]}
    assert formats[-1]["kept"] == weights.architecture.max_length
