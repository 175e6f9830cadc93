r"""The forward pass of networks whose heads attend by position alone, on sparse matrices.

Where no query or key depends on the tokens, the attention weights $w_{ij}$ of a head are the same for all inputs: they
are computed once, and each run multiplies by their sparse matrix. The residual stream $x$ is stored as [dimension,
position], so that a product touches only the rows that a sparse matrix reads and writes. Weights below $2^{-54} / n$ of
the largest one are left out, where $n$ is the number of positions: together they are less than its rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vitrify.arrays import Arrays, Bools, Floats, Ints, Tokens
from vitrify.net.attention import allowed_keys
from vitrify.net.sparse import Stack, dense, is_sparse
from vitrify.net.transformer import Head, Transformer

if TYPE_CHECKING:
    from scipy.sparse import csr_array

HEADS_AT_ONCE = 16  # whose scores are held together
MAX_ENTRIES = 1 << 25  # weights that are stored: 400 MB with their indices
NEGLIGIBLE_BITS = 54


@dataclass(frozen=True)
class _Affine:
    """The rows of an affine map, transposed, that are not zero: `rows` of the result, from all dimensions."""

    rows: Ints
    matrix: csr_array[np.float64]
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        out: Floats = self.matrix @ x
        out += self.bias[:, None]
        return out


@dataclass(frozen=True)
class _Block:
    """One block: what its heads copy, their scores as queries and keys by position, and its units."""

    heads: tuple[Head, ...]
    queries: Floats  # [head, pos, d], times the inverse temperature
    keys: Floats
    values: _Affine
    owners: Ints  # the head of each row of the values
    outputs: _Affine
    hidden: _Affine
    written: _Affine


class SparseForward:
    """A network of heads that attend by position alone, prepared for runs on batches of tokens."""

    def __init__(self, net: Transformer, arrays: Arrays) -> None:
        self.net, self.arrays = net, arrays
        self._dims = np.flatnonzero(_fixed(net, arrays))
        self._at = self._fixed_stream()
        self.blocks = [self._block(number) for number in range(len(net.blocks))]
        self.unembed = _affine(arrays["unembed.W_U"], arrays["unembed.b_U"], all_rows=True)
        self._patterns: dict[int, list[csr_array[np.float64]]] = {}

    @classmethod
    def of(cls, net: object, arrays: Arrays) -> SparseForward | None:
        """Return the network if it is stored sparsely and all heads attend by position alone, to earlier positions."""
        if not isinstance(net, Transformer) or not any(map(is_sparse, arrays.values())) or not _plain(net):
            return None
        fixed = _fixed(net, arrays)
        reads = (arrays[f"blocks.{n}.attn.W_{part}"] for n, b in enumerate(net.blocks) if b.heads for part in "QK")
        return None if any(_rows_read(matrix)[~fixed].any() for matrix in reads) else cls(net, arrays)

    def __call__(self, tokens: Tokens) -> Floats | None:
        """Return logits [batch, pos, out]; None if BOS stands elsewhere than in front, or weights take too much."""
        wanted = tokens.shape[1]
        words = tokens[:, self.net.pads :] != 0
        if tokens[:, : self.net.pads].any() or (words[:, 1:] & ~words[:, :-1]).any():
            return None
        length = min(n for n in _lengths(self.net.positions) if n >= wanted)
        patterns = self._pattern(length)
        if patterns is None:
            return None
        tokens, batch = np.pad(tokens, ((0, 0), (0, length - wanted))), len(tokens)
        x = self._embedded(tokens)
        for block, weights in zip(self.blocks, patterns, strict=True):
            if block.heads:
                values = block.values(x).reshape(-1, batch, length)
                mixed = np.empty_like(values)
                for head in range(len(block.heads)):
                    low, high = np.searchsorted(block.owners, (head, head + 1))
                    own = weights[head * length : (head + 1) * length]
                    flat = values[low:high].reshape(-1, length)
                    mixed[low:high] = (own @ flat.T).T.reshape(high - low, batch, length)
                x[block.outputs.rows] += block.outputs(mixed.reshape(len(mixed), -1))
            if len(block.hidden.rows):
                hidden = block.hidden(x)
                np.maximum(hidden, 0, out=hidden)
                x[block.written.rows] += block.written(hidden)
        logits: Floats = self.unembed(x).T.reshape(batch, length, -1)
        return logits[:, :wanted]

    def _embedded(self, tokens: Tokens) -> Floats:
        """Return the residual stream [dimension, batch · pos] of tokens at their positions."""
        batch, length = tokens.shape
        x = np.zeros((self.net.d_model, batch * length))
        for name, index in (("embed.W_E", tokens.ravel()), ("pos_embed.W_pos", np.tile(np.arange(length), batch))):
            table = dense(self.arrays[name])
            used = np.flatnonzero(table.any(axis=0))
            x[used] += table[:, used].T[:, index]
        return x

    def _block(self, number: int) -> _Block:
        block, name = self.net.blocks[number], f"blocks.{number}"
        empty = _Affine(np.empty(0, dtype=int), _csr(np.zeros((0, 0))), np.empty(0))
        queries = keys = np.empty((0, 0, 0))
        values = outputs = hidden = written = empty
        owners = np.empty(0, dtype=int)
        if block.heads:
            queries, keys = (
                self._by_head(self.arrays[f"{name}.attn.W_{part}"], self.arrays[f"{name}.attn.b_{part}"])
                for part in "QK"
            )
            queries = queries * self.arrays[f"{name}.attn.beta"][:, None, None]
            values = _affine(_beside(self.arrays[f"{name}.attn.W_V"]), self.arrays[f"{name}.attn.b_V"].ravel())
            owners = values.rows // block.d_value
            joined = _stacked(self.arrays[f"{name}.attn.W_O"])[values.rows]
            outputs = _affine(joined, np.zeros(self.net.d_model))
        if block.units:
            hidden = _affine(self.arrays[f"{name}.mlp.W_in"], self.arrays[f"{name}.mlp.b_in"], all_rows=True)
            written = _affine(self.arrays[f"{name}.mlp.W_out"], self.arrays[f"{name}.mlp.b_out"])
        return _Block(block.heads, queries, keys, values, owners, outputs, hidden, written)

    def _by_head(self, stack: Any, bias: Floats) -> Floats:
        """Return the queries or keys [head, pos, d] of heads, which depend on positions alone."""
        read = _beside(stack)[self._dims].toarray()
        return (self._at @ read).reshape(len(self._at), *bias.shape).swapaxes(0, 1) + bias[:, None]

    def _fixed_stream(self) -> Floats:
        """Return what is at each position in the dimensions that do not depend on the tokens."""
        table, embedding = (dense(self.arrays[name])[:, self._dims] for name in ("pos_embed.W_pos", "embed.W_E"))
        front = np.arange(len(table)) < self.net.pads
        stream: Floats = table + np.where(front[:, None], embedding[0], embedding[-1])
        return stream

    def _pattern(self, length: int) -> list[csr_array[np.float64]] | None:
        """Return, for each block, the attention weights [head · query, key]; None if there are too many."""
        if length not in self._patterns:
            patterns, room = [], MAX_ENTRIES
            for block in self.blocks:
                patterns.append(_weights(block, length))
                room -= patterns[-1].nnz
                if room < 0:
                    return None
            self._patterns[length] = patterns
        return self._patterns[length]


def _plain(net: Transformer) -> bool:
    """Return whether a network is made of nothing but heads that attend to earlier positions, and ReLU units."""
    heads = [head for block in net.blocks for head in block.heads]
    simple = all(
        head.mask in ("causal", "strict") and head.attention in ("softmax", "hard") and not head.rotary
        and not head.segment and head.window in (None, 1) for head in heads
    )  # fmt: skip
    blocks = all(block.cell is None and not block.experts for block in net.blocks)
    return simple and blocks and net.residual == "add" and not net.norm and net.loops == 1 and net.tabled


def _fixed(net: Transformer, arrays: Arrays) -> Bools:
    """Return the dimensions of the residual stream that no token but BOS and no block changes."""
    embedding = dense(arrays["embed.W_E"])
    fixed: Bools = (embedding[1:] == embedding[-1]).all(axis=0)
    for number, block in enumerate(net.blocks):
        name = f"blocks.{number}"
        if block.heads:
            fixed &= ~_columns_used(_stacked(arrays[f"{name}.attn.W_O"]))
        if block.units:
            fixed &= ~_columns_used(_csr(arrays[f"{name}.mlp.W_out"])) & (arrays[f"{name}.mlp.b_out"] == 0)
    return fixed


def _rows_read(stack: Any) -> Bools:
    """Return which inputs the matrices of some heads read."""
    read: Bools = np.diff(_beside(stack).indptr) > 0
    return read


def _columns_used(matrix: csr_array[np.float64]) -> Bools:
    used: Bools = np.bincount(matrix.indices, minlength=matrix.shape[1]) > 0
    return used


def _csr(matrix: Any) -> csr_array[np.float64]:
    from scipy.sparse import csr_array

    result: csr_array[np.float64] = csr_array(matrix)
    result.eliminate_zeros()
    return result


def _beside(stack: Any) -> csr_array[np.float64]:
    """Return matrices [head, in, out] side by side, [in, head · out]."""
    if isinstance(stack, Stack):
        return stack.beside()
    return _csr(stack.transpose(1, 0, 2).reshape(stack.shape[1], -1))


def _stacked(stack: Any) -> csr_array[np.float64]:
    """Return matrices [head, in, out] below each other, [head · in, out]."""
    return stack.csr if isinstance(stack, Stack) else _csr(stack.reshape(-1, stack.shape[-1]))


def _affine(matrix: Any, bias: Floats, *, all_rows: bool = False) -> _Affine:
    """Return the map `x @ matrix + bias` for a transposed x: the rows that are not zero, or `all_rows`."""
    turned = _csr(_csr(matrix).T)
    rows = np.flatnonzero((np.diff(turned.indptr) > 0) | (bias != 0) | all_rows)
    return _Affine(rows, turned[rows], np.asarray(bias)[rows])


def _weights(block: _Block, length: int) -> csr_array[np.float64]:
    """Return the attention weights [head · query, key] of a block, without those that are less than rounding."""
    from scipy.sparse import coo_array

    rows, columns, data = [np.empty(0, dtype=int)], [np.empty(0, dtype=int)], [np.empty(0)]
    places = np.arange(length)
    least = -(NEGLIGIBLE_BITS * np.log(2.0) + np.log(length))
    for start in range(0, len(block.heads), HEADS_AT_ONCE):
        heads = range(start, min(start + HEADS_AT_ONCE, len(block.heads)))
        scores = block.queries[start : heads.stop, :length] @ block.keys[start : heads.stop, :length].swapaxes(1, 2)
        for head in heads:
            kind, own = block.heads[head], scores[head - start]
            own[~allowed_keys(kind, places, places)] = -np.inf
            best = own.max(axis=1, keepdims=True)
            own -= np.where(np.isfinite(best), best, 0.0)
            query, key = np.nonzero(own >= (-kind.resolution if kind.attention == "hard" else least))
            weight = np.ones(len(key)) if kind.attention == "hard" else np.exp(own[query, key])
            if kind.attention == "hard" and kind.ties in ("left", "right"):
                firsts = np.diff(query, prepend=-1) > 0 if kind.ties == "left" else np.diff(query, append=length) > 0
                query, key, weight = query[firsts], key[firsts], weight[firsts]
            total = np.bincount(query, weight, minlength=length)
            rows.append(query + head * length)
            columns.append(key)
            data.append(weight / total[query])
    entries = np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))
    return coo_array(entries, shape=(len(block.heads) * length, length)).tocsr()


def _lengths(positions: int) -> list[int]:
    """Return the lengths that sequences are filled up to: halves of the longest, so that few weights are stored."""
    return [positions >> halvings for halvings in range(positions.bit_length())]
