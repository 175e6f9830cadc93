r"""k-hop runs on $\lfloor\log_2 k\rfloor + 2$ attention layers with one head each, in a width that depends on nothing.

The sizes are those of Sanford, Hsu and Telgarsky (2024, arXiv 2402.09268, Theorem 4.2); the weights are our own
derivation. Positions are stored as integers, one dimension each, 0 for none; $f^m$ is $m$ hops.

- Layer 1 attends to the last earlier occurrence of the current symbol and reads its index plus 1. That is $f(i)$: the
  position after the last earlier occurrence.
- Layer $t + 2$, for $t = 0, 1, \dots$, attends to the position $f^{2^t}(i)$ and reads what it holds: its pointer, so
  that the pointer becomes $f^{2^{t+1}}(i)$, and, if the binary digit $t$ of $k$ is 1, its symbol. So the symbol is that
  of $f^m(i)$, where $m$ has the digits of $k$ that were read, and after the highest digit that of $f^k(i)$. A hop
  without a match goes to position 0, which is BOS, and stays there.
- The logit of symbol number $v$ (0 for none) is $2vw - v^2 = w^2 - (v - w)^2$ where $w$ is the number that was read.

One hop needs no pointer: layer 1 copies the previous symbol, and layer 2 attends to the last position whose previous
symbol is the current one. These are the two heads of an induction head, as training finds them.

Symbols are points on a circle where they are compared: $V$ of them have the gap $1 - \cos(2\pi/V)$.

| | formula |
| --- | --- |
| layers, heads | $\lfloor\log_2 k\rfloor + 2$; one in each layer |
| width | 8 for $k = 1$, 7 for every other, whatever the length and the number of symbols |
| units | $\lfloor\log_2 k\rfloor$ plus the number of ones among the binary digits of $k$ |

Units erase dimensions that are used again.
"""

from __future__ import annotations

import numpy as np

from vitrify.constructions.catalogue import Attention, DeclaredSizes, construction
from vitrify.kit.heads.match import recent_match
from vitrify.kit.heads.position import at_position, earlier
from vitrify.kit.network import Affine, Builder, Circle, Integers, Network, Output, Readout, Space
from vitrify.spec.ngrams.model import BEGIN
from vitrify.spec.tasks.k_hop import KHop


def sizes(task: KHop) -> DeclaredSizes:
    """Return all sizes, by the binary digits of k."""
    floor = task.hops.bit_length() - 1
    width = 7 if floor else 8
    return DeclaredSizes(
        {"layers": floor + 2, "heads": floor + 2, "d_model": width, "units": floor + task.hops.bit_count()}
    )


@construction(
    "k-hop", "the symbol after k hops, in about log k layers", sizes, default=True, certified=("to T", "to T")
)
def k_hop(task: KHop, *, attention: Attention = "softmax") -> Network:
    """Return a transformer that outputs, at every position, the symbol after `task.hops` hops."""
    net = Builder(
        f"{task.hops}-hop over {task.symbols} symbols, {attention}", (BEGIN, *task.alphabet), task.length, attention
    )
    codes = Circle(task.alphabet)
    symbol = net.embed("symbol", codes, np.vstack([np.zeros(2), codes.codes]))
    number = net.embed("number", Integers(("v",), 0.0, float(task.symbols)), np.arange(len(net.inputs))[:, None])
    answer = _doubled(net, symbol, number, task.hops) if task.hops > 1 else _induction(net, symbol, number)
    values = np.arange(len(task.outputs), dtype=float)
    output = Output("transducer", task.outputs)
    readout = Readout(((answer, np.outer(np.eye(answer.size)[-1], 2 * values)),), -(values**2), {answer: 0.25})
    source = "in the spirit of Sanford, Hsu and Telgarsky 2024, arXiv 2402.09268"
    return net.network(output, readout, "k-hop by doubling", {"hops": task.hops}, source=source)


def _induction(net: Builder, symbol: Space, number: Space) -> Space:
    """Return the number of the symbol after the last earlier occurrence of the current one."""
    before = at_position(net, earlier(net, 1), Affine.copy(symbol), Space("symbol before", symbol.kind))
    return recent_match(net, symbol, before, number, name="after 1 hop")


def _doubled(net: Builder, symbol: Space, number: Space, hops: int) -> Space:
    """Return the number of the symbol after at least two hops: the pointer doubles from layer to layer."""
    largest = max(number.kind.high, float(net.max_length))
    following = net.at_tokens(Affine.of({net.index: [[1.0]]}, [1.0]))
    pointers = Integers(("position",), 0.0, float(net.max_length))
    space = recent_match(net, symbol, symbol, (following, pointers), mask="strict", name="after 1 hop")
    pointer, read = Affine.copy(space), Affine.copy(number)
    for digit in range(hops.bit_length() - 1):
        reads = bool(hops >> digit & 1)
        labels = ("position", *([f"symbol after {hops % (2 << digit)}"] * reads))
        writes = Space(f"after {2 << digit} hops", Integers(labels, 0.0, largest))
        space = at_position(net, pointer, pointer.beside(read) if reads else pointer, writes)
        pointer, read = _coordinate(space, 0), _coordinate(space, 1) if reads else read
    return at_position(net, pointer, read, Space(f"symbol after {hops} hops", number.kind))


def _coordinate(space: Space, number: int) -> Affine:
    return Affine.of({space: np.eye(space.size)[:, [number]]})
