r"""k-hop runs on $\lceil\log_2 k\rceil + 2$ attention layers with one head each, in a width that depends on nothing.

In the spirit of Sanford, Hsu and Telgarsky (2024, arXiv 2402.09268); the weights are our own derivation. Places are
whole numbers, one dimension each, 0 for none; $f^m$ is $m$ hops.

- Layer 1 copies the symbol before. Layer 2 finds the last place $f(i)$ whose symbol before is the present symbol, and
  reads its number and its symbol there: an induction head, and for $k = 1$ all there is.
- Each further layer doubles. Position $i$ knows *here* $= f^m(i)$, *ahead* $= f^{m+1}(i)$ and the symbol ahead; it
  looks at one of the two places and reads all three there, so that $m$ becomes $2m$ or $2m + 1$. It begins at 0; the
  binary digits of $k - 1$ say where to look, 0 here and 1 ahead, and at the end $m = k - 1$. What no later layer looks
  at is not read. A hop that finds nothing is at place 0, which is BOS, and stays there.
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

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.kit.heads import at_place, earlier, recent_match
from vitrify.kit.network import Affine, Builder, Network, Readout, Space
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
    before = at_place(net, earlier(net, 1), Affine.copy(symbol), Space("symbol before", codes))
    most = float(max(task.length, task.symbols))
    looks = ["ahead" if bit == "1" else "here" for bit in f"{task.hops - 1:b}"] if task.hops > 1 else []
    known = {"ahead": Affine.copy(net.index), "symbol": Affine.copy(number)}
    kept = (*looks[:1], "symbol")
    kind = Integers(kept, 0.0, most)
    answer = recent_match(net, symbol, before, (_beside(known, kept), kind), name="after 1 hop")
    known = {"here": Affine.copy(net.index)} | _parts(answer)
    for done, look in enumerate(looks, start=1):
        kept = (*(part for part in ("here", "ahead") if part in looks[done:]), "symbol")
        writes = Space(f"after {(task.hops - 1 >> len(looks) - done) + 1} hops", Integers(kept, 0.0, most))
        answer = at_place(net, known[look], _beside(known, kept), writes)
        known = _parts(answer)
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


def _beside(known: Mapping[str, Affine], kept: Iterable[str]) -> Affine:
    return reduce(Affine.beside, (known[part] for part in kept))


def _parts(space: Space) -> dict[str, Affine]:
    """What a position knows, by name: its numbers one by one."""
    assert isinstance(space.kind, Integers)
    eye = np.eye(space.size)
    return {part: Affine.of({space: eye[:, at : at + 1]}) for at, part in enumerate(space.kind.labels)}


def sizes(task: KHop) -> dict[str, int]:
    """What the formulas promise."""
    digits = f"{task.hops - 1:b}" if task.hops > 1 else ""
    layers = len(digits) + 2
    units = sum(1 + len(set(digits[done:])) for done in range(1, len(digits) + 1)) if digits else 1
    return {"layers": layers, "heads": layers, "d_model": 10 if digits else 8, "units": units}


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, KHop)
    return k_hop(spec, attention=settings.attention)


CONSTRUCTIONS = (
    Construction(
        "k-hop",
        KHop,
        "the symbol after k hops, in about log k layers",
        _make,
        default=True,
        choices=("attention",),
        certified="proved",
    ),
)
