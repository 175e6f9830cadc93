r"""Lemma: answers that depend on how often each letter occurs, by running one word for each count.

Let a dimension of the residual stream be *own* if it depends on the letter of its position, *counted* if it depends on
the letters up to there by their counts only, and free if the position, the length and the counts in the whole word
determine it. Heads may read own dimensions as values only, with keys that are the same at all letters: their output is
then a function of counts, of the whole word without a mask, of the letters so far behind a causal one. Counted
dimensions may be read by queries, and by nothing at other positions. If the readout reads no own dimension, the logits
are, in real arithmetic, functions of position, length and counts: all words with the same counts have the same.

| instance | statement |
| --- | --- |
| heads, units | they read own and counted dimensions only as said above: by the zeros of the stored weights |
| counts | on one word for each count, of each length, every answer is right, by twice the bound of rounding |
| letters | letters with the same embedding act in the same way, and the order of letters does not matter to the spec |

The bound of rounding (`precision/rounding.py`) is for any order of summation and the same for all words of a count, so
the lemma is about the stored weights, in float64.
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Bools, Floats, Ints
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.right import Oracle
from vitrify.certification.precision.formats import FORMATS
from vitrify.certification.precision.rounding import bounded_logits, supports
from vitrify.net.inference import with_pads
from vitrify.net.positions import tabulated
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights, has_architecture
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.groups import commute

MAX_LENGTH = 160  # all counts of all lengths take its fourth power of scores
SLACK = 2.0  # of the bound of rounding: it is rounded, too, and so are positions that are logarithms


@lemma(Automaton)
def letter_counts(case: SpecCase) -> SpecProof:
    """Prove that answers are right for every count, and that counts determine them."""
    weights = case.weights
    if not has_architecture(weights, Transformer) or not supports(weights.architecture):
        raise Undecided("rounding is bounded for transformers without norms only")
    net = weights.architecture
    if net.pads != 1 or net.max_length > MAX_LENGTH or net.loops > 1:
        raise Undecided(f"counts are enumerated for one BOS, no loop and at most {MAX_LENGTH} letters")
    masks = {head.mask for block in net.blocks for head in block.heads if head.window is None}
    if len(masks) != 1 or not masks <= {"none", "causal"} or any(block.window for block in net.blocks):
        raise Undecided("not all heads see the whole word, or all letters so far")
    classes = _classes(weights, case.spec)
    checked = _Reads(tabulated(weights), causal=masks == {"causal"}).check()
    count = sum(_check_counts(weights, case.oracle, words) for words in _words(net, classes))
    return SpecProof("counts of letters", net.max_length, {"heads and units": checked, "counts": count}, exact=True)


def _classes(weights: Weights[Transformer], spec: Automaton) -> tuple[int, int]:
    """Return one token of each of the two classes of letters, which have the same embedding and act in the same way."""
    embedded = np.asarray(dense(weights.arrays["embed.W_E"]))[1:]
    maps = list(spec.maps().values())
    rows = {row.tobytes(): action for row, action in zip(embedded, maps, strict=True)}
    if any(rows[row.tobytes()] != action for row, action in zip(embedded, maps, strict=True)) or not commute(maps):
        raise Undecided("letters with one embedding act in different ways, or the order of letters matters")
    if len(rows) > 2:
        raise Undecided(f"letters have {len(rows)} embeddings, and counts are enumerated for two")
    tokens = [1 + next(i for i, each in enumerate(embedded) if each.tobytes() == row) for row in rows]
    return tokens[0], tokens[-1]


def _words(net: Transformer, classes: tuple[int, int]) -> list[Ints]:
    """Return words [word, letter] with every count, of every length if heads see later positions."""
    lengths = range(net.min_length, net.max_length + 1) if net.looks_ahead else [net.max_length]
    one, other = classes
    return [np.where(np.tri(n + 1, n, -1, dtype=bool), other, one).astype(np.int64) for n in lengths]


def _check_counts(weights: Weights[Transformer], oracle: Oracle, words: Ints) -> int:
    """Return the number of words, one for each count, after which all answers are right in spite of rounding."""
    known = np.asarray(oracle.known(words), dtype=np.int64)[..., None]
    if oracle.answer != "symbol" or (known < 0).any():
        raise Undecided("not every prefix has a right symbol")
    logits, error = bounded_logits(weights, with_pads(weights.architecture, words), FORMATS["float64"])
    right = np.take_along_axis(logits - SLACK * error, known, axis=-1)
    others = logits + SLACK * error
    np.put_along_axis(others, known, -np.inf, axis=-1)
    if not (right > others.max(axis=-1, keepdims=True)).all():
        raise Undecided(f"an answer to a word of {words.shape[1]} letters is wrong, or might be after rounding")
    return len(words)


class _Reads:
    """What parts of a network read: own, counted and moving dimensions, block by block."""

    def __init__(self, weights: Weights[Transformer], *, causal: bool) -> None:
        self.net, self.causal = weights.architecture, causal
        self.arrays = {name: np.asarray(dense(array)) for name, array in weights.arrays.items()}
        letters, places = self.arrays["embed.W_E"][1:], self.arrays["pos_embed.W_pos"][1:]
        self.own: Bools = (letters != letters[:1]).any(axis=0)
        self.counted: Bools = np.zeros_like(self.own)
        self.moving: Bools = (places != places[:1]).any(axis=0)  # different at different letters

    def check(self) -> int:
        """Return the number of heads and units that read as the lemma wants; refuse others."""
        checked = 0
        for index, block in enumerate(self.net.blocks):
            heads = [self._after_head(index, at) for at in range(len(block.heads))]
            self._write(heads)
            if block.units:
                into, out = self.arrays[f"blocks.{index}.mlp.W_in"], self.arrays[f"blocks.{index}.mlp.W_out"]
                self._write([tuple(np.asarray(out[_reads(into, dims)].any(axis=0)) for dims in self._kinds)])
            checked += len(heads) + block.units
        if (self.own & self.arrays["unembed.W_U"].any(axis=1)).any():
            raise Undecided("the readout reads the letter of a position")
        return checked

    @property
    def _kinds(self) -> tuple[Bools, Bools, Bools]:
        return self.own, self.counted, self.moving

    def _after_head(self, block: int, head: int) -> tuple[Bools, ...]:
        """Return which dimensions that a head writes are own, counted and moving."""
        query, key, value = (self.arrays[f"blocks.{block}.attn.W_{letter}"][head].any(axis=1) for letter in "QKV")
        sums = (value & self.own).any()
        if (self.own & (query | key)).any() or (self.counted & (key | value)).any():
            raise Undecided(f"head {block}.{head} attends by letters, or reads counts at other positions")
        shares = self.net.blocks[block].heads[head].ties == "average"
        if sums and ((key & self.moving).any() or not shares):
            raise Undecided(f"head {block}.{head} does not weigh all letters alike")
        written = self.arrays[f"blocks.{block}.attn.W_O"][head].any(axis=0)
        counts = (self.causal and sums) or (query & self.counted).any()
        return np.zeros_like(written), written & bool(counts), written

    def _write(self, parts: list[tuple[Bools, ...]]) -> None:
        for own, counted, moving in parts:
            self.own, self.counted, self.moving = self.own | own, self.counted | counted, self.moving | moving


def _reads(into: Floats, dims: Bools) -> Bools:
    """Return which units read some dimensions."""
    return np.asarray((into[dims] != 0).any(axis=0))
