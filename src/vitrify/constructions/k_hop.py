r"""k-hop runs on $\lceil\log_2 k\rceil + 2$ attention layers with one head each, in a width that depends on nothing.

In the spirit of Sanford, Hsu and Telgarsky (2024, arXiv 2402.09268); the weights are our own derivation. Places are
whole numbers, one dimension each, 0 for none; $f^m$ is $m$ hops.

- Layer 1 copies the symbol before. Layer 2 finds the last place $f(i)$ whose symbol before is the present symbol, and
  reads its number and its symbol there: an induction head, and for $k = 1$ all there is.
- Each further layer doubles. With $f^m(i)$, $f^{m+1}(i)$ and the symbol at the latter in the stream, position $i$ looks
  at $f^m(i)$ or at $f^{m+1}(i)$ and reads all three there, so that $m$ becomes $2m$ or $2m + 1$. It begins with $m =
  0$, and $m + 1$ goes through $\lceil k/2^s\rceil$ for $s = \lceil\log_2 k\rceil - 1, \dots, 0$. The last layer reads
  only the symbol. A hop that finds nothing is at place 0, which is BOS, and stays there.
- The logit of symbol number $v$ (0 for none) is $2vw - v^2 = w^2 - (v - w)^2$ where $w$ is the number that was read.

Symbols are points on a circle, $c_v$, where they are compared: $V$ of them have the gap $1 - \cos(2\pi/V)$.

| | formula |
| --- | --- |
| layers, heads | $\lceil\log_2 k\rceil + 2$; one in each layer |
| width | 9 for $k = 1$, 11 for every other, whatever the length and the number of symbols |
| units | $\max(1, 3\lceil\log_2 k\rceil - 2)$, which erase what is no longer needed |
"""

from __future__ import annotations

import numpy as np

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.kit.heads import at_place, recent_match, shift
from vitrify.kit.network import Affine, Builder, Network, Readout, Space
from vitrify.kit.positions import Quadratic
from vitrify.net.architecture import Output
from vitrify.net.spaces import Circle, Integers
from vitrify.net.transformer import AttentionKind
from vitrify.spec.ngram import BEGIN
from vitrify.spec.tasks.k_hop import KHop


def k_hop(task: KHop, *, attention: AttentionKind = "softmax") -> Network:
    """A transformer that says at every position which symbol it finds after so many hops."""
    net = Builder(
        name=f"{task.hops}-hop over {task.symbols} symbols, {attention}",
        inputs=(BEGIN, *task.alphabet),
        max_length=task.length,
        attention=attention,
    )
    codes = Circle(task.alphabet)
    symbol = net.embed("symbol", codes, np.vstack([np.zeros(2), codes.codes]))
    number = net.embed("number", Integers(("v",), 0.0, float(task.symbols)), np.arange(len(net.inputs))[:, None])
    code = Quadratic(task.length)
    squares = net.place("position", code.kind(), code.table())
    before = shift(net, symbol, 1, code, squares, name="symbol before")
    most = float(max(task.length, task.symbols))

    def found(*parts: str) -> Integers:
        return Integers(parts, 0.0, most)

    here, ahead, seen = Affine.copy(net.index), Affine.copy(net.index), Affine.copy(number)
    rounds = (task.hops - 1).bit_length()
    if not rounds:
        answer = recent_match(net, symbol, before, (seen, found("symbol")), name="after 1 hop")
    else:
        both = here.beside(seen), found("place", "symbol")
        answer = recent_match(net, symbol, before, both, name="after 1 hop")
        ahead, seen = _part(answer, 0), _part(answer, 1)
    hops = 1
    for left in reversed(range(rounds)):
        whither = here if -(-task.hops >> left) == 2 * hops - 1 else ahead
        hops = -(-task.hops >> left)
        if left:
            value, kind = here.beside(ahead).beside(seen), found("a hop less", "place", "symbol")
        else:
            value, kind = seen, found("symbol")
        answer = at_place(net, whither, squares, value, Space(f"after {hops} hops", kind))
        here, ahead, seen = (_part(answer, at) for at in range(3)) if left else (here, ahead, _part(answer, 0))
    values = np.arange(len(task.outputs), dtype=float)
    return net.network(
        Output("transducer", task.outputs),
        Readout(((answer, np.outer(np.eye(answer.size)[-1], 2 * values)),), -(values**2), {answer: 0.25}),
        {
            "construction": "k-hop by doubling",
            "attention": attention,
            "hops": task.hops,
            "source": "in the spirit of Sanford, Hsu and Telgarsky 2024, arXiv 2402.09268",
        },
    )


def _part(space: Space, at: int) -> Affine:
    return Affine.of({space: np.eye(space.size)[:, at : at + 1]})


def sizes(task: KHop) -> dict[str, int]:
    """What the formulas promise."""
    rounds = (task.hops - 1).bit_length()
    return {
        "layers": rounds + 2,
        "heads": rounds + 2,
        "d_model": 11 if rounds else 9,
        "units": max(1, 3 * rounds - 2),
    }


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, KHop)
    return k_hop(spec, attention=settings.attention)


CONSTRUCTIONS = (
    Construction(
        "k-hop", KHop, "the symbol after k hops, in about log k layers", _make, default=True, choices=("attention",)
    ),
)
