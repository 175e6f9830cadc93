r"""Lemma "machine steps at any length": a network without a table of positions writes the steps of a Turing machine.

A word is the input and then the steps. Token $x$ at position $i = 0, 1, \dots$ (BOS is 0) has the move $\mu(x)$, 0 for
BOS and letters. $H_i$ is the sum of the moves up to $i$, the cell of the machine's head. The token wrote to $W_i$: a
step to $H_{i-1}$, the letter at $i$ to the cell $i - 1$; $W_0 = 0$. So $|H_i| \le i$, and $|W_i| < i$ for $i > 0$. The
residual stream is a sum of fixed vectors, times numbers that the word determines. The instances say how heads and units
see these vectors; what is not named must be 0.

1. Layer 1: all scores are 0, so the heads take means, one up to here ($n = i + 1$ positions), one before ($n = i$). A
   token adds $\mu(x)$ in one dimension, BOS adds 1 in another: $a = H_i / n$ and $b = 1/n$; $a' = H_{i-1}/n'$ and $b'$
   of the strict head, which are 0 at BOS.
2. Layer 2: keys are $j$ and $j^2$. Two heads have the scores $\pm 2aj - bj^2$. They select $j = \max(\pm H_i, 0)$ and
   write $\pm j$ and $j^2$, together $H_i$ and $H_i^2$. Two strict heads have $\pm 2(a' + \ell)j - b'j^2$, where $\ell$
   is 1 for letters. At a step they give $W_i$ and $W_i^2$ in the same way. At a letter $a' = 0$, and $\pm 2j - j^2/i$
   is largest at $i - 1$, and at 0. At BOS they see no key, and write 0.
3. Layer 3: a token $j$ has the score $2H_i W_j - W_j^2$, BOS $H_i^2 - \tfrac12$. The last key of those with the best
   score is selected: the last token that wrote to $H_i$, else BOS. Its symbol is read, the blank of BOS.
4. Units and logits see the token and the symbol read, and nothing else: for every pair they give the step of the rule;
   of a probabilistic machine, the distribution of the next step.

A recurrent layer may stand in the place of layers 1 and 2. It carries $(H, H^2, p, p^2, 1)$ with $p = W + 1$, 0 at BOS.
Instances: $(0, 0, 0, 0, 1)$ at BOS, and for every other token the matrix $(H + \mu, H^2 + 2\mu H + \mu^2, p', p'^2, 1)$
with $p' = H + 1$ for a step and $p' = p + 1$ for a letter. Then no number is rounded but in sums that are exact.

By induction over the steps, this is right for every word in exact arithmetic. All weights that enter a score are powers
of two or 0, no two numbers share a dimension, and all numbers but $a, b, a', b'$ are multiples of 1/2, at most
$2^{53}/4$. So float64 rounds means and the scores of layer 2, and nothing else. Of $n$ positions and unit roundoff $u$,
a mean is off by $\gamma_{n-1}$, and a score of layer 2 by $3n\gamma_2$. The right key of layer 2 wins by a positive
number while $(1-u)/n > 2\gamma_{n-1}(1+u) + 6n\gamma_2$ (derivation: `kit/heads/whole.py`). So the proof is about the
stored weights, up to the longest sequence that the network reads.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from vitrify.arrays import Floats, Matrix
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.machine_steps import parts_of
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.meanings import MeaningOracle
from vitrify.net.sparse import dense
from vitrify.net.transformer import Head, Transformer
from vitrify.net.weights import Weights, has_architecture
from vitrify.spec.computation.probabilistic_turing import ProbabilisticTuringMachine
from vitrify.spec.computation.turing import OneTapeMachine, TuringMachine

BITS = 53  # of float64
HEADS, RECURRENT_HEADS = (2, 4, 1), (0, 1)
MAX_WEIGHT = 4.0  # of what enters a score


@lemma(TuringMachine, ProbabilisticTuringMachine)
def machine_steps_at_any_length(case: SpecCase) -> SpecProof:
    """Prove that a network with positions by formula writes the steps of a Turing machine."""
    weights = case.weights
    if not has_architecture(weights, Transformer) or weights.architecture.tabled:
        raise Undecided("there is a table of positions")
    net = weights.architecture
    heads = net.heads_per_layer
    if heads not in (HEADS, RECURRENT_HEADS) or any(net.units_per_layer[:-1]) or net.pads != 1 or net.loops != 1:
        raise Undecided(f"steps are followed through layers of {HEADS} heads, or a recurrence and one head")
    if net.norm or net.residual != "add" or any(block.experts for block in net.blocks):
        raise Undecided("steps are not followed through norms, experts and concatenating residuals")
    if [bool(block.cell) for block in net.blocks] != [heads == RECURRENT_HEADS, *[False] * (len(heads) - 1)]:
        raise Undecided("there is a recurrence in the wrong place, or none")
    stream = _Stream(weights, case.spec)
    if heads == RECURRENT_HEADS:
        _recurrence(stream)
    else:
        _means(stream)
        _whole_numbers(stream)
    read = _last_writes(stream)
    stream.need_apart()
    _need_rules(case, stream, read)
    longest = net.longest
    if not separated(longest + 1, BITS):
        raise Undecided(f"at {longest} symbols rounding may exceed the gap of a head of layer 2")
    if 4 * (longest + 1) ** 2 > 1 << (BITS - 1):
        raise Undecided(f"at {longest} symbols the scores of the last layer are not exact")
    checked = {"vectors of the residual stream": len(stream.vectors), "tokens": len(net.inputs), "symbols": len(read)}
    return SpecProof("machine steps at any length", longest, checked, exact=True)


def separated(positions: int, bits: int) -> bool:
    r"""Return whether $(1-u)/n > 2\gamma_{n-1}(1+u) + 6n\gamma_2$, in exact fractions.

    >>> separated(23_726_566, 53), separated(1_024, 24), separated(30_000_000, 53)
    (True, True, False)
    """
    u, n = Fraction(1, 1 << bits), positions
    gamma, twice = (steps * u / (1 - steps * u) for steps in (n - 1, 2))
    return n * u < 1 and (1 - u) / n > 2 * gamma * (1 + u) + 6 * n * twice


class _Stream:
    """The vectors of which the residual stream is a sum, by name, and the tokens with their parts.

    `t` and `t²` are what formulas add; `tokens` [token, dim] are embeddings, that of BOS first, and `constant` what all
    positions have besides. `writes` are what stands in the stream at a token, but for the constant: one vector, one
    times the cell written, and one times its square.
    """

    writes: tuple[Floats, Floats, Floats]

    def __init__(self, weights: Weights, spec: OneTapeMachine) -> None:
        net = weights.architecture
        self.weights, self.net = weights, net
        self.tokens: Floats = np.asarray(dense(weights.arrays["embed.W_E"]))
        _need_powers(self.tokens, "embed.W_E")
        self.parts = [(spec.blank, 0, spec.start), *(parts_of(spec, token) for token in net.inputs[1:])]
        self.letters = np.array([token in spec.alphabet for token in net.inputs], dtype=float)
        self.letters[0] = 0.0
        self.constant: Floats = np.zeros(net.d_model)
        self.vectors: dict[str, Floats] = {"t": np.zeros(net.d_model), "t²": np.zeros(net.d_model)}
        for formula in net.formulas:
            constant, *powers = (*formula.coefficients, 0, 0)
            if constant or any(powers[2:]) or formula.function != "polynomial":
                raise Undecided("positions are more than t and t²")
            self.vectors["t"][formula.dim], self.vectors["t²"][formula.dim] = powers[:2]

    def head(self, block: int, index: int) -> tuple[Head, dict[str, Floats]]:
        """Return a head and its matrices: queries with the inverse temperature, keys, and what it writes."""
        arrays = {
            key: np.asarray(dense(self.weights.arrays[f"blocks.{block}.attn.{key}"][index]))
            for key in ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O", "beta")
        }
        for name, array in arrays.items():
            _need_powers(array, f"{name} of head {block}.{index}")
        head = self.net.blocks[block].heads[index]
        if head.attention != "hard" or head.window is not None or arrays["beta"] != 1:
            raise Undecided(f"head {block}.{index} is not hard, or sees only a window")
        if block < len(self.net.blocks) - 1 and any(_crowded(arrays[f"W_{letter}"]) for letter in "KVO"):
            raise Undecided(f"head {block}.{index} adds up several dimensions")
        return head, arrays

    def need_apart(self) -> None:
        """Refuse vectors that share a dimension with each other or with an embedding: their sum would be rounded."""
        vectors = (self.constant, *self.vectors.values())
        used = np.array([self.tokens.any(axis=0), *(vector != 0 for vector in vectors)])
        if (used.sum(axis=0) > 1).any():
            raise Undecided("two numbers share a dimension")

    def need(self, matrix: Matrix, wanted: dict[str, Floats], what: str) -> None:
        """Refuse a matrix that maps some vector to something else than wanted, by default to 0."""
        for name, vector in self.vectors.items():
            self.need_equal(vector @ matrix, wanted.get(name, 0.0), f"{what} of {name}")

    def need_equal(self, actual: Floats, wanted: Floats | float, what: str) -> None:
        """Refuse numbers other than wanted."""
        if (np.asarray(actual) != wanted).any():
            raise Undecided(f"{what}: not as in the proof")


def _need_powers(array: Floats, what: str) -> None:
    """Refuse numbers other than 0 and small powers of two: products with them are exact."""
    size = np.abs(array)
    if not ((size == 0) | (np.frexp(size)[0] == 0.5)).all() or size.max(initial=0.0) > MAX_WEIGHT:
        raise Undecided(f"{what} holds numbers other than small powers of two")


def _crowded(matrix: Floats) -> bool:
    """Return whether some column has several entries."""
    return bool((np.count_nonzero(matrix, axis=0) > 1).any())


def _means(stream: _Stream) -> None:
    """Check instance 1, and add the vectors of the four means."""
    masks: list[str] = []
    added: dict[str, Floats] = {}
    for index in range(HEADS[0]):
        head, part = stream.head(0, index)
        if (part["W_Q"].any() or part["b_Q"].any()) and (part["W_K"].any() or part["b_K"].any()):
            raise Undecided("a head of layer 1 has scores other than 0")
        values = stream.tokens @ part["W_V"] @ part["W_O"] + part["b_V"] @ part["W_O"]
        stream.need(part["W_V"] @ part["W_O"], {}, "values of layer 1")
        moves = np.array([move for _, move, _ in stream.parts], dtype=float)
        share = values[0]
        if not moves.any():
            raise Undecided("no step moves")
        moving = int(np.abs(moves).argmax())
        number = values[moving] * moves[moving]
        stream.need_equal(values, moves[:, None] * number + (np.arange(len(values)) == 0)[:, None] * share, "values")
        if (
            head.ties != "average"
            or np.count_nonzero(share) > 1
            or np.count_nonzero(number) > 1
            or (share * number).any()
        ):
            raise Undecided("a head of layer 1 does not keep moves and BOS apart")
        masks.append(head.mask)
        prime = "′" if head.mask == "strict" else ""
        added |= {f"a{prime}": number, f"b{prime}": share}
    if sorted(masks) != ["causal", "strict"]:
        raise Undecided("layer 1 has not one causal and one strict head")
    stream.vectors |= added


def _whole_numbers(stream: _Stream) -> None:
    """Check instance 2, and add the vectors of the cell of the head, that of the cell written, and their squares."""
    written: dict[str, dict[float, tuple[Floats, Floats]]] = {"causal": {}, "strict": {}}
    for index in range(HEADS[1]):
        head, part = stream.head(1, index)
        if head.resolution or head.mask not in written or part["b_K"].any() or part["b_Q"].any() or part["b_V"].any():
            raise Undecided("a head of layer 2 has biases, a resolution or another mask")
        w_k, prime = part["W_K"], "′" if head.mask == "strict" else ""
        keys = np.stack([stream.vectors[name] @ w_k for name in ("t", "t²")])  # [j and j², key]
        stream.need_equal(stream.tokens @ w_k, 0.0, "keys of layer 2")
        stream.need(w_k, {"t": keys[0], "t²": keys[1]}, "keys of layer 2")
        if np.count_nonzero(w_k.any(axis=0)) != 2 or _mixed(stream, part["W_Q"]):
            raise Undecided("scores of layer 2 are not sums of two products")
        products = part["W_Q"] @ keys.T  # [dim, coefficients of j and j²]
        sign = float(np.sign(stream.vectors[f"a{prime}"] @ products[:, 0]))
        stream.need(products, {f"a{prime}": np.array([2 * sign, 0]), f"b{prime}": np.array([0, -1])}, "scores")
        ahead = stream.letters if head.mask == "strict" else np.zeros(len(stream.letters))
        stream.need_equal(stream.tokens @ products, ahead[:, None] * np.array([2 * sign, 0]), "scores of tokens")
        out = part["W_V"] @ part["W_O"]
        stream.need_equal(stream.tokens @ out, 0.0, "values of layer 2")
        copied = stream.vectors["t"] @ out, stream.vectors["t²"] @ out
        stream.need(out, {"t": copied[0], "t²": copied[1]}, "values of layer 2")
        written[head.mask][sign] = (sign * copied[0], copied[1])
    for mask, name in (("causal", "H"), ("strict", "W")):
        pair = written[mask]
        if set(pair) != {1.0, -1.0} or not np.array_equal(pair[1.0], pair[-1.0]):
            raise Undecided("layer 2 has no two heads of opposite signs that write one number")
        stream.vectors |= {name: pair[1.0][0], f"{name}²": pair[1.0][1]}
    stream.writes = (stream.constant, stream.vectors["W"], stream.vectors["W²"])


def _recurrence(stream: _Stream) -> None:
    """Check the matrix of every token, and add the vectors of the numbers that a recurrent layer carries."""
    cell = stream.net.blocks[0].cell
    if (
        cell is None
        or cell.kind != "full"
        or cell.state != 5
        or any(vector.any() for vector in stream.vectors.values())
    ):
        raise Undecided("the recurrence does not carry five numbers by matrices, or there are positions")
    arrays = {key: np.asarray(dense(stream.weights.arrays[f"blocks.0.rec.{key}"])) for key in ("W_A", "W_B", "W_C")}
    for name, array in arrays.items():
        _need_powers(array, f"{name} of the recurrence")
    driven = stream.tokens @ arrays["W_B"]
    stream.need_equal(driven, np.outer(np.arange(len(driven)) == 0, np.eye(5)[4]), "what drives the recurrence")
    matrices = np.einsum("xi,ist->xst", stream.tokens, arrays["W_A"])
    for (_, move, _), letter, matrix in list(zip(stream.parts, stream.letters, matrices, strict=True))[1:]:
        row = np.eye(5)
        place = row[2] + row[4] if letter else row[0] + row[4]
        square = row[3] + 2 * row[2] + row[4] if letter else row[1] + 2 * row[0] + row[4]
        wanted = (row[0] + move * row[4], row[1] + 2 * move * row[0] + move**2 * row[4], place, square, row[4])
        stream.need_equal(matrix, np.stack(wanted, axis=1), "a matrix of the recurrence")
    *numbers, stream.constant = arrays["W_C"]
    if any(np.count_nonzero(vector) != 1 for vector in (*numbers, stream.constant)):
        raise Undecided("a number of the recurrence is not in one dimension")
    stream.vectors |= dict(zip(("H", "H²", "p", "p²"), numbers, strict=True))
    place, square = numbers[2:]
    stream.writes = (place + square, place + 2 * square, square)  # p = W + 1


def _mixed(stream: _Stream, matrix: Floats) -> bool:
    """Return whether some column reads several of the means."""
    read = np.array([stream.vectors[name] @ matrix != 0 for name in ("a", "b", "a′", "b′")])
    return bool((read.sum(axis=0) > 1).any())


def _last_writes(stream: _Stream) -> dict[str, Floats]:
    """Check instance 3; return what is added for every symbol read."""
    head, part = stream.head(len(stream.net.blocks) - 1, 0)
    if head.mask != "causal" or head.ties != "right" or not 0 <= head.resolution < 0.5:
        raise Undecided("the last head does not take the last of the best keys")
    always = stream.tokens + stream.constant
    queries, keys = always @ part["W_Q"] + part["b_Q"], always @ part["W_K"] + part["b_K"]
    stream.need_equal(queries, queries[0], "queries of tokens")
    stream.need_equal(keys[1:], keys[1:2], "keys of tokens")
    by_cell = np.stack([queries[0], *(stream.vectors[name] @ part["W_Q"] for name in ("H", "H²"))])  # [1, H, H²]
    stream.need(part["W_Q"], {"H": by_cell[1], "H²": by_cell[2]}, "queries of the last layer")
    names = [name for name in stream.vectors if name[0] in "Wp"]
    stream.need(part["W_K"], {name: stream.vectors[name] @ part["W_K"] for name in names}, "keys of the last layer")
    offset, number, square = (vector @ part["W_K"] for vector in stream.writes)
    by_write = np.stack([keys[0], keys[1:2].sum(axis=0) + offset, number, square])  # [BOS, 1, W, W²]
    wanted = np.array([[-0.5, 0, 0, -1], [0, 0, 2, 0], [1, 0, 0, 0]])
    stream.need_equal(by_cell @ by_write.T, wanted, "scores of the last layer")
    out = part["W_V"] @ part["W_O"]
    stream.need(out, {}, "values of the last layer")
    values = always @ out + part["b_V"] @ part["W_O"]
    read: dict[str, Floats] = {}
    for (symbol, _, _), value in zip(stream.parts, values, strict=True):
        stream.need_equal(value, read.setdefault(symbol, value), f"values of {symbol!r}")
    return read


def _need_rules(case: SpecCase, stream: _Stream, read: dict[str, Floats]) -> None:
    """Check instance 4: the steps for every token and every symbol that may be read after it."""
    arrays, net, spec, oracle = stream.weights.arrays, stream.net, case.spec, case.oracle
    names = [f"blocks.{len(net.blocks) - 1}.mlp.{name}" for name in ("W_in", "b_in", "W_out", "b_out")]
    w_in, b_in, w_out, b_out = (np.asarray(dense(arrays[name])) for name in names)
    w_u, b_u = (np.asarray(dense(arrays[f"unembed.{name}"])) for name in ("W_U", "b_U"))
    stream.need(w_in, {}, "units")
    stream.need(w_u, {}, "logits")
    assert isinstance(oracle, MeaningOracle)
    for symbol, value in read.items():
        x = stream.tokens + stream.constant + value
        logits = (x + np.maximum(x @ w_in + b_in, 0.0) @ w_out + b_out) @ w_u + b_u
        known = oracle.rows([spec.following(state, symbol) for _, _, state in stream.parts])
        if not (oracle.judged(known[None], logits[None]) <= oracle.tolerance()).all():
            raise Undecided(f"a step after reading {symbol!r} is not that of its rule")
