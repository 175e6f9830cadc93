r"""Brackets of any number of kinds run on two attention layers with one head each, however many kinds there are.

In the spirit of Yao et al. (2021, arXiv 2105.11115); the weights are our own derivation. After a beginning of a word,
the bracket that must close next is the last *opening* one $j$ that left the same number $d$ of open brackets: $d_j =
d_i$.

- Layer 1 counts $d_i$ exactly (+1 for an opening bracket, −1 for a closing one); an MLP writes the code of $d_i$ in
  bits.
- Layer 2 finds the last position that is an opening bracket and has the same code, and copies the code of its kind.
  The score of $j$ is $T(\tfrac12 c_{d_i} \cdot c_{d_j} + \tfrac12 s_j) + j$ with the steps $s_j = \pm 1$, so the right
  one leads by at least 1. Where $d_i = 0$ nothing is to be closed, and $i$ is BOS or a closing bracket: it leads any
  opening one itself, and its kind is void.
- The unembedding does the rest, linearly: opening brackets have the logit $D - \tfrac12 - d$, the end of the word
  $\tfrac12 - d$, and a closing bracket of kind $\tau$ with the code $c_\tau$ of $B$ bits $c_\tau \cdot x - (B - 1)$,
  which is 1 for the copied kind, at most −1 for any other and for none.

With $B = \max(2, \lceil\log_2 k\rceil)$ bits for $k$ kinds and $B_D = \max(2, \lceil\log_2(D+1)\rceil)$ for depths:

| | formula |
| --- | --- |
| layers, heads | 2; 2 |
| units | $2D$, all in the first layer |
| width | $2B + B_D + 5$, three less under hard attention (which counts behind $T$ pads and needs no index) |
"""

from __future__ import annotations

import numpy as np

from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.kit.gadgets.steps import int_lookup
from vitrify.kit.heads.average import count
from vitrify.kit.heads.select import Test, select
from vitrify.kit.network import Affine, AttentionKind, Bits, Builder, Integers, Network, Output, Readout, Space
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.ngrams.model import BEGIN, END


def sizes(language: Dyck, *, attention: AttentionKind) -> DeclaredSizes:
    """Return all sizes: bits for kinds and depths."""
    kind, depth = (max(2, (n - 1).bit_length()) for n in (len(language.brackets), language.depth + 1))
    width = 2 * kind + depth + (2 if attention == "hard" else 5)
    return DeclaredSizes.of_layers((1, 1), (2 * language.depth, 0), width)


@construction(
    "dyck",
    "which brackets may come next, in two attention layers",
    sizes,
    default=True,
    unproved="several keys may share",
)
def dyck(language: Dyck, *, attention: Attention = "softmax", max_length: MaxLength | None = None) -> Network:
    """Return a transformer of two attention layers that outputs which brackets may come next."""
    length = reading_length(language, max_length)
    kinds, depth = len(language.brackets), language.depth
    name = f"brackets of {kinds} kinds to depth {depth}, {attention}"
    net = Builder(name, (BEGIN, *language.vocabulary), length, attention, pads=length if attention == "hard" else 1)
    sides = np.array([0.0, *(1.0, -1.0) * kinds])  # BOS, then each opening bracket before its closing one
    step = net.embed("step", Integers(("s",), -1.0, 1.0), sides[:, None])
    types = Bits(tuple(opening for opening, _ in language.brackets), void=True)
    codes = np.zeros((len(net.inputs), types.size))
    codes[1::2] = types.codes
    kind = net.embed("kind of opening bracket", types, codes)
    open_now = count(net, Affine.copy(step), ("d",), float(depth), abs_total=float(length), name="depth")
    depths = Bits(tuple(map(str, range(depth + 1))))
    code = int_lookup(net, open_now, lambda d: depths.codes[d], Space("code of the depth", depths))
    same = Test(Affine.copy(code, 0.5), Affine.copy(code), depths.norm / 2)
    opens = Test(Affine.constant(1.0), Affine.copy(step, 0.5), 0.5)
    top = select(net, [same, opens], Affine.copy(kind), Space("bracket to close", types), which="last", sink="none")
    output = Output("next", (*language.vocabulary, END))
    readout = _readout(net.inputs, open_now, top, types, depth)
    facts = {"kinds": kinds, "depth": depth}
    source = "in the spirit of Yao et al. 2021, arXiv 2105.11115"
    return net.network(output, readout, "brackets, two layers", facts, source=source, reuse=False)


def _readout(inputs: tuple[str, ...], open_now: Space, top: Space, types: Bits, depth: int) -> Readout:
    """Return the readout of the brackets and of the end: logits are positive where they may come next."""
    symbols = len(inputs)  # without BOS, with the end
    by_depth, by_kind, bias = np.zeros((1, symbols)), np.zeros((types.size, symbols)), np.zeros(symbols)
    by_depth[0, 0::2] = -1.0  # opening brackets, and the end behind them all
    bias[0::2] = depth - 0.5
    bias[-1] = 0.5
    by_kind[:, 1::2] = types.codes.T
    bias[1::2] = 1.0 - types.norm
    return Readout(((open_now, by_depth), (top, by_kind)), bias, {open_now: 0.25, top: 1 / (2 * types.size)})


def reading_length(language: Dyck, max_length: int | None) -> int:
    """Return the number of brackets a network reads: by default the length of the language."""
    if max_length is not None and not 1 <= max_length <= language.length:
        raise BuildRefused(
            f"--max-length must be from 1 to the length of the language, {language.length}, got {max_length}: change "
            "the length in the spec"
        )
    return max_length or language.length
