r"""Facts are recalled by attention and units, or by attention alone.

In the spirit of Nichani, Lee & Bietti (2025, arXiv 2412.06538). Every subject, relation and filler has a random unit
vector of $d$ numbers, and so has every answer. Sentences name one subject and one relation, anywhere among fillers.

- `facts`: one head finds both by a flag and takes the mean of their codes. $m$ ReLU units look at it in random
  directions, and a fitted matrix reads out the answer (`mlp-memory` of `constructions/associations.py`), so that $md$
  must grow like the number $F$ of facts.
- `facts-heads`: no units. Subjects are in blocks of $b$; the head of a block finds the one that is there and writes
  $\sum_r u_{a(s,r)}$, the codes of all answers about it; those of relations write $\sum_{a \in A_r} u_a$. Where a
  block has no word in the sentence, its head rests on BOS. The right answer is in both sums and scores about 2, any
  other about 1 at most, with a variance of about $(R + A)/d$. So $d$ must grow like $R + A$, $A$ being the most
  answers that a relation has, and $bH$ like the number of subjects, but $d$ needs not grow with them. No answer about
  a subject may be one of another relation, too, and not its own there.

| | `facts` | `facts-heads` |
| --- | --- | --- |
| heads | 1 | $\lceil S/b \rceil + \lceil R/b \rceil$, $b = \min(16, \lfloor d/4 \rfloor)$, at least 1 |
| units | $m$ | 0 |
| width | $3d + 1$ | $2d + 1$ and one more for every head |

Building draws the codes, stores, and asks about every fact; a net that is not perfect is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.constructions._memory import (
    FactCodes,
    affordable,
    chosen,
    fact_heads,
    fact_units,
    heads_dimension,
    layered_sizes,
    sure,
)
from vitrify.constructions.associations import SOURCE, add_units, compared, numbers
from vitrify.constructions.catalogue import Construction, Settings
from vitrify.errors import BuildRefused
from vitrify.kit.heads import Store, recall
from vitrify.kit.heads.select import Test, select
from vitrify.kit.memory import random_codes
from vitrify.kit.network import Affine, Builder, Network, Space
from vitrify.net.architecture import Output
from vitrify.net.spaces import Flag, OneHot
from vitrify.net.transformer import AttentionKind
from vitrify.spec.facts import Facts, answers_by_relation
from vitrify.spec.ngram import BEGIN

Floats = NDArray[np.float64]

BLOCK = 16  # words in one head, at most


def facts(
    spec: Facts,
    *,
    attention: AttentionKind = "softmax",
    max_length: int | None = None,
    dimension: int | None = None,
    units: int | None = None,
    seed: int = 0,
) -> Network:
    """A transformer of one head and one layer of units that answers every question of the spec."""
    questions, answers = len(spec.facts), len(spec.answers)
    affordable(questions, answers)
    size, count = layered_sizes(questions, answers, dimension, units)
    rng = np.random.default_rng(seed)
    codes = FactCodes.draw(spec, size, rng)
    memory = fact_units(codes, count, rng)
    change = "choose more --units, a larger --dimension or another --seed"
    lead = sure(memory, f"dimension {size}, {count} units and seed {seed}", change)
    name = f"{questions} facts in {count} units, {attention}"
    net = Builder(name, (BEGIN, *spec.vocabulary), _length(spec, max_length), attention)
    code = _embedded(net, spec, codes, rng)
    flags = np.zeros((len(net.inputs), 1))
    flags[1 : 1 + len(spec.subjects) + len(spec.relations)] = 1.0
    named = Test(Affine.constant(1.0), Affine.copy(net.embed("named", Flag(), flags)), 1.0)
    key = select(net, [named], Affine.copy(code), Space("key", numbers(size, 1.0)), sink="none")
    recalled = add_units(net, key, memory)
    about: dict[str, Any] = {
        "construction": "facts in units",
        "shape": "facts",
        "attention": attention,
        "facts": questions,
    }
    about |= {"dimension": size, "units": count, "seed": seed, "least lead": lead, "source": SOURCE}
    return net.network(Output("class", spec.answers), compared(memory, recalled, lead), about, reuse=False)


def facts_in_heads(
    spec: Facts,
    *,
    attention: AttentionKind = "softmax",
    max_length: int | None = None,
    dimension: int | None = None,
    seed: int = 0,
) -> Network:
    """A transformer of one layer of heads and no units that answers every question of the spec."""
    _refuse_confusions(spec)
    size = chosen("--dimension", dimension, heads_dimension(spec))
    rng = np.random.default_rng(seed)
    codes = FactCodes.draw(spec, size, rng)
    memory, by_subject, by_relation = fact_heads(codes)
    lead = sure(memory, f"dimension {size} and seed {seed}", "choose a larger --dimension or another --seed")
    name = f"{len(spec.facts)} facts in heads, {attention}"
    net = Builder(name, (BEGIN, *spec.vocabulary), _length(spec, max_length), attention)
    code = _embedded(net, spec, codes, rng)
    stores = [
        *_stores("subjects", spec.subjects, codes.subjects, by_subject),
        *_stores("relations", spec.relations, codes.relations, by_relation),
    ]
    table = np.zeros((len(net.inputs), len(stores)))
    last = 1
    for number, stored in enumerate(stores):
        table[last : last + len(stored.codes), number] = 1.0
        last += len(stored.codes)
    kinds = net.embed("block", OneHot(tuple(stored.name for stored in stores), void=True), table)
    recalled = Space("recalled", numbers(size, sum(float(np.abs(stored.contents).max()) for stored in stores)))
    recall(net, code, kinds, stores, recalled)
    about: dict[str, Any] = {"construction": "facts in heads", "shape": "facts-heads", "attention": attention}
    about |= {"facts": len(spec.facts), "dimension": size, "seed": seed, "least lead": lead, "source": SOURCE}
    return net.network(Output("class", spec.answers), compared(memory, recalled, lead), about, reuse=False)


def _embedded(net: Builder, spec: Facts, codes: FactCodes, rng: np.random.Generator) -> Space:
    """The codes of all words, those of fillers drawn now; BOS has none."""
    size = codes.answers.shape[1]
    others = random_codes(rng, len(spec.fillers), size)
    return net.embed(
        "code", numbers(size, 1.0), np.vstack([np.zeros((1, size)), codes.subjects, codes.relations, others])
    )


def _stores(name: str, words: Sequence[str], codes: Floats, contents: Floats) -> list[Store]:
    block = _block(codes.shape[1])
    return [
        Store(f"{name} {words[at]} …", codes[at : at + block], contents[at : at + block])
        for at in range(0, len(words), block)
    ]


def _block(dimension: int) -> int:
    """Words in one head: few enough that their random codes are well apart from being dependent."""
    return max(1, min(BLOCK, dimension // 4))


def _length(spec: Facts, max_length: int | None) -> int:
    if max_length is not None and max_length < 2:
        raise BuildRefused(f"a question has two words: --max-length must be at least 2, is {max_length}")
    return max_length or spec.length


def _refuse_confusions(spec: Facts) -> None:
    """An answer about a subject that another of its relations could give, too, but does not."""
    could = {relation: set(answers) for relation, answers in answers_by_relation(spec).items()}
    about: dict[str, dict[str, str]] = {}
    for subject, relation, answer in spec.facts:
        about.setdefault(subject, {})[relation] = answer
    for subject, known in about.items():
        for relation, answer in known.items():
            for other in known.values():
                if other != answer and other in could[relation]:
                    raise BuildRefused(
                        f"heads alone can't tell which answer about {subject!r} is its {relation!r}: {other!r} and "
                        f"{answer!r} are both about it, and both are answers of that relation; give relations answers "
                        "of their own, or use --shape facts"
                    )


def sizes(spec: Facts, dimension: int, units: int = 0) -> dict[str, int]:
    """What the formulas promise; without units the facts are in heads."""
    if units:
        return {"layers": 1, "heads": 1, "units": units, "d_model": 3 * dimension + 1}
    block = _block(dimension)
    heads = -(-len(spec.subjects) // block) - (-len(spec.relations) // block)
    return {"layers": 1, "heads": heads, "units": 0, "d_model": 2 * dimension + 1 + heads}


def _units(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Facts)
    return facts(
        spec,
        attention=settings.attention,
        max_length=settings.max_length,
        dimension=settings.dimension,
        units=settings.units,
        seed=settings.seed or 0,
    )


def _heads(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Facts)
    return facts_in_heads(
        spec,
        attention=settings.attention,
        max_length=settings.max_length,
        dimension=settings.dimension,
        seed=settings.seed or 0,
    )


CONSTRUCTIONS = (
    Construction(
        "facts",
        Facts,
        "a head that finds subject and relation, and units that store the answers",
        _units,
        default=True,
        choices=("attention", "max_length", "dimension", "units", "seed"),
        unproved="known only within bounds",
    ),
    Construction(
        "facts-heads",
        Facts,
        "heads that store all answers about their subjects, and no units",
        _heads,
        choices=("attention", "max_length", "dimension", "seed"),
        unproved="known only within bounds",
    ),
)
