r"""k-hop runs on $\lceil\log_2 k\rceil + 2$ attention layers with one head each, in a width that depends on nothing.

In the spirit of Sanford, Hsu and Telgarsky (2024, arXiv 2402.09268); the weights are our own derivation. Positions are
stored as integers, one dimension each, 0 for none; $f^m$ is $m$ hops.

- Layer 1 copies the previous symbol. Layer 2 attends to the last position $f(i)$ whose previous symbol is the current
  one, and reads its index and its symbol: an induction head, and for $k = 1$ the whole net.
- Each further layer doubles. Position $i$ holds *here* $= f^m(i)$, *ahead* $= f^{m+1}(i)$ and the symbol ahead; it
  attends to one of the two positions and reads all three there, so that $m$ becomes $2m$ or $2m + 1$. It begins with
  $m = 0$; the binary digits of $k - 1$ choose the position, 0 here and 1 ahead, and at the end $m = k - 1$. What no
  later layer needs is not read. A hop without a match goes to position 0, which is BOS, and stays there.
- The logit of symbol number $v$ (0 for none) is $2vw - v^2 = w^2 - (v - w)^2$ where $w$ is the number that was read.

Symbols are points on a circle where they are compared: $V$ of them have the gap $1 - \cos(2\pi/V)$.

| | formula |
| --- | --- |
| layers, heads | $\lceil\log_2 k\rceil + 2$; one in each layer |
| width | 8 for $k = 1$, 10 for every other, whatever the length and the number of symbols |
| units | 1 for $k = 1$; else for every digit of $k - 1$ one, and as many as there are different digits after it |

Units erase dimensions that are used again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

import numpy as np

from vitrify.constructions.catalogue import Attention, DeclaredSizes, construction
from vitrify.kit.heads.match import recent_match
from vitrify.kit.heads.position import at_position, earlier
from vitrify.kit.network import Affine, Builder, Circle, Integers, Network, Output, Readout, Space
from vitrify.spec.ngrams.model import BEGIN
from vitrify.spec.tasks.k_hop import KHop


def sizes(task: KHop) -> DeclaredSizes:
    """Return all sizes, by the binary digits of k - 1."""
    digits = f"{task.hops - 1:b}" if task.hops > 1 else ""
    layers = len(digits) + 2
    units = sum(1 + len(set(digits[done:])) for done in range(1, len(digits) + 1)) if digits else 1
    return DeclaredSizes({"layers": layers, "heads": layers, "d_model": 10 if digits else 8, "units": units})


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
    before = at_position(net, earlier(net, 1), Affine.copy(symbol), Space("symbol before", codes))
    most = float(max(task.length, task.symbols))
    digits = ["ahead" if bit == "1" else "here" for bit in f"{task.hops - 1:b}"] if task.hops > 1 else []
    known = {"ahead": Affine.copy(net.index), "symbol": Affine.copy(number)}
    fields = (*digits[:1], "symbol")
    kind = Integers(fields, 0.0, most)
    answer = recent_match(net, symbol, before, (_concatenated(known, fields), kind), name="after 1 hop")
    known = {"here": Affine.copy(net.index)} | _parts(answer)
    for done, digit in enumerate(digits, start=1):
        fields = (*(part for part in ("here", "ahead") if part in digits[done:]), "symbol")
        writes = Space(f"after {(task.hops - 1 >> len(digits) - done) + 1} hops", Integers(fields, 0.0, most))
        answer = at_position(net, known[digit], _concatenated(known, fields), writes)
        known = _parts(answer)
    values = np.arange(len(task.outputs), dtype=float)
    output = Output("transducer", task.outputs)
    readout = Readout(((answer, np.outer(np.eye(answer.size)[-1], 2 * values)),), -(values**2), {answer: 0.25})
    source = "in the spirit of Sanford, Hsu and Telgarsky 2024, arXiv 2402.09268"
    return net.network(output, readout, "k-hop by doubling", {"hops": task.hops}, source=source)


def _concatenated(known: Mapping[str, Affine], fields: Iterable[str]) -> Affine:
    return reduce(Affine.beside, (known[part] for part in fields))


def _parts(space: Space) -> dict[str, Affine]:
    """Return the coordinates of a space by name, each as a map."""
    assert isinstance(space.kind, Integers)
    eye = np.eye(space.size)
    return {part: Affine.of({space: eye[:, at : at + 1]}) for at, part in enumerate(space.kind.labels)}
