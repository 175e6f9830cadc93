"""Running on words: what is read, what is refused, and that batching never shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nets import copycat, mixed, random_net
from vitrify.arrays import Ints
from vitrify.errors import InputError
from vitrify.net import inference, transformer_forward
from vitrify.net.architecture import Output
from vitrify.net.inference import batch_logits, batch_of, encode, log_probabilities, logits
from vitrify.net.transformer import Transformer
from vitrify.net.transformer_forward import forward
from vitrify.net.weights import Weights

SEQUENCES = [[1, 2, 3, 1, 1, 2, 3], [], [3, 3, 3], [2], [1, 2, 3, 1], [], [2, 1]]


def test_words_become_ids() -> None:
    assert encode(mixed(), ["a", "c", "b", "a"]) == [1, 3, 2, 1]
    assert encode(mixed(), "cab") == [3, 1, 2]
    assert encode(mixed(), []) == []


def test_unknown_symbols_are_refused_all_at_once() -> None:
    with pytest.raises(InputError) as caught:
        encode(mixed(), ["z", "a", "x", "z"])
    assert str(caught.value) == "this network does not read 'x', 'z'; it reads: a b c"


def test_the_first_token_is_not_for_users() -> None:
    with pytest.raises(InputError, match="does not read '<s>'"):
        encode(mixed(), ["<s>"])


def test_a_long_alphabet_is_cut_short() -> None:
    net = replace(mixed(), inputs=("<s>", *(f"w{index}" for index in range(21))))
    with pytest.raises(InputError, match=r"it reads: w0 .* w19 …$"):
        encode(net, ["z"])
    with pytest.raises(InputError, match=r"it reads: w0 .* w19$"):
        encode(replace(net, inputs=net.inputs[:-1]), ["z"])


@pytest.mark.parametrize("name", ["<unk>", "<UNK>"])
def test_the_unknown_word_stands_in(name: str) -> None:
    net = replace(mixed(), inputs=("<s>", "a", name))
    assert encode(net, ["z", "a", name]) == [2, 1, 2]


def test_too_many_tokens_are_refused() -> None:
    assert len(encode(mixed(), "a" * 7)) == 7
    with pytest.raises(InputError) as caught:
        encode(mixed(), "a" * 8)
    assert str(caught.value) == (
        "the sequence has 8 tokens, the network was built for at most 7: build it again with --max-length 8"
    )


def test_a_batch_is_padded_in_front_and_filled_behind() -> None:
    tokens, lengths = batch_of(mixed(), [[1, 2, 3], [], [2]])
    assert tokens.tolist() == [[0, 0, 1, 2, 3], [0, 0, 0, 0, 0], [0, 0, 2, 0, 0]]
    assert lengths.tolist() == [5, 2, 3]


def test_an_empty_batch() -> None:
    tokens, lengths = batch_of(mixed(), [])
    assert tokens.shape == (0, 2)
    assert tokens.dtype == lengths.dtype == np.dtype(np.int64)
    assert list(logits(random_net(mixed()), [])) == []


def test_rows_are_read_after_each_token() -> None:
    [rows] = logits(copycat(), [[1, 2, 2]])
    assert rows.tolist() == [[0, 0], [0, 0], [1, 0], [0, 1]]
    [nothing] = logits(copycat(), [[]])
    assert nothing.tolist() == [[0, 0]]


@pytest.mark.parametrize("budget", [1, 1 << 14, 1 << 28], ids=["one by one", "some", "all at once"])
@pytest.mark.parametrize("residual", ["add", "concatenate"])
def test_unequal_lengths_come_back_in_order(monkeypatch: pytest.MonkeyPatch, budget: int, residual: str) -> None:
    weights = random_net(mixed(residual=residual))
    monkeypatch.setattr(inference, "BATCH_BYTES", budget)
    together = list(logits(weights, SEQUENCES))
    assert [rows.shape for rows in together] == [(len(sequence) + 1, 3) for sequence in SEQUENCES]
    for sequence, rows in zip(SEQUENCES, together, strict=True):
        [alone] = logits(weights, [sequence])
        np.testing.assert_allclose(rows, alone, atol=1e-12)


def test_batches_fit_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def spy(weights: Weights, tokens: Ints, lengths: Ints | None = None) -> object:
        seen.append(len(tokens))
        return batch_logits(weights, tokens, lengths)

    monkeypatch.setattr(inference, "batch_logits", spy)
    weights = random_net(mixed())
    list(logits(weights, SEQUENCES))
    assert seen == [7]
    seen.clear()
    # Widths 5 and 6, 3 symbols, 10 heads: position by position 4·5 + 2·6 + 4·3 + 4·10·pos floats.
    monkeypatch.setattr(inference, "BATCH_BYTES", 8 * 2 * 9 * (44 + 40 * 9))
    list(logits(weights, [[1] * 7] * 5))
    assert seen == [2, 2, 1]


def test_long_sequences_attend_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = random_net(mixed())
    wanted = list(logits(weights, SEQUENCES))
    chunks: list[object] = []

    def spy(*args: object, **options: object) -> object:
        chunks.append(options["query_chunk"])
        return forward(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(transformer_forward, "forward", spy)
    monkeypatch.setattr(inference, "QUERY_CHUNK", 2)
    for got, want in zip(logits(weights, SEQUENCES), wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-12)
    list(logits(weights, [[1, 2]]))
    assert chunks == [2, None]


def test_log_probabilities_are_normalised() -> None:
    raw = np.array([[[1.0, 2.0, 3.0], [1000.0, 0.0, -1000.0]]])
    log_p = log_probabilities(Output("lm", ("x", "y", "z")), raw)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=-1), 1, rtol=1e-14)
    np.testing.assert_allclose(log_p[0, 0], np.log(np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum()), rtol=1e-14)
    assert log_p[0, 1].tolist() == [0, -1000, -2000]


def test_normalised_logits_pass_through() -> None:
    raw = np.array([[1.0, 2.0]])
    assert log_probabilities(Output("lm", ("x", "y"), scores="log"), raw) is raw


def test_a_net_without_blocks_runs() -> None:
    net = Transformer(("<s>", "a"), Output("lm", ("x",)), max_length=2, d_model=1)
    arrays = {name: np.ones(shape) for name, shape in net.shapes().items()}
    assert [rows.tolist() for rows in logits(Weights(net, arrays), [[1], []])] == [[[3], [3]], [[3]]]


def test_linear_scores_are_divided_by_their_sum() -> None:
    found = log_probabilities(Output("lm", ("x", "y", "z"), scores="linear"), np.array([[1.0, 3.0, 0.0]]))
    assert np.exp(found).tolist() == [[0.25, 0.75, 0.0]]
