r"""Facts are recalled by attention and units, or by attention alone.

In the spirit of Nichani, Lee & Bietti (2025, arXiv 2412.06538). Every subject, relation and filler has a random unit
vector of $d$ numbers, and so has every answer. Sentences name one subject and one relation, anywhere among fillers.

- `facts`: one head finds both by a flag and takes the mean of their codes. $m$ ReLU units look at it in random
  directions, and a fitted matrix reads out the answer (`mlp-memory` of `constructions/associations.py`), so that $md$
  must grow like the number $F$ of facts.
- `facts-heads`: no units. Subjects are in blocks of $b$; the head of a block finds the one that is there and writes
  $\sum_r u_{a(s,r)}$, the codes of all answers about it; those of relations write $\sum_{a \in A_r} u_a$. Where a
  block has no word in the sentence, its head attends to BOS. The right answer is in both sums and scores about 2, any
  other about 1 at most, with a variance of about $(R + A)/d$. So $d$ must grow like $R + A$, $A$ being the most
  answers that a relation has, and $bH$ like the number of subjects, but $d$ needs not grow with them. If $a(s, r') \in
  A_r$ for relations $r, r'$ of a subject $s$, it must equal $a(s, r)$.

| | `facts` | `facts-heads` |
| --- | --- | --- |
| heads | 1 | $\lceil S/b \rceil + \lceil R/b \rceil$, $b = \min(16, \lfloor d/4 \rfloor)$, at least 1 |
| units | $m$ | 0 |
| width | $3d + 1$ | $2d + 1$ and one more for every head |

Building draws the codes, stores, and checks every fact; a net with an error is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.associations import add_units, compared, numbers
from vitrify.constructions.catalogue import Attention, DeclaredSizes, Dimension, MaxLength, Seed, Units, construction
from vitrify.errors import BuildRefused
from vitrify.kit import fact_storage
from vitrify.kit.fact_storage import FactCodes, fact_heads, fact_units, heads_dimension, layered_sizes
from vitrify.kit.heads.recall import Store, recall
from vitrify.kit.heads.select import Test, select
from vitrify.kit.memory import random_codes
from vitrify.kit.network import Affine, Builder, Flag, Network, OneHot, Space
from vitrify.spec.memory.facts import Facts, answers_by_relation
from vitrify.spec.ngrams.model import BEGIN

MAX_BLOCK = 16  # words per head


def sizes(spec: Facts, *, dimension: int | None, units: int | None) -> DeclaredSizes:
    """Return all sizes: units, three codes and a flag."""
    d, m = layered_sizes(len(spec.facts), len(spec.answers), dimension, units)
    return DeclaredSizes({"layers": 1, "heads": 1, "units": m, "d_model": 3 * d + 1})


def sizes_in_heads(spec: Facts, *, dimension: int | None) -> DeclaredSizes:
    """Return all sizes: one head and one flag for each block of subjects or relations."""
    d = dimension or heads_dimension(spec)
    heads = sum(-(-len(words) // _block(d)) for words in (spec.subjects, spec.relations))
    return DeclaredSizes({"layers": 1, "heads": heads, "units": 0, "d_model": 2 * d + 1 + heads})


@construction(
    "facts",
    "a head that finds subject and relation, and units that store the answers",
    sizes,
    default=True,
    unproved="known only within bounds",
)
def facts(
    spec: Facts,
    *,
    attention: Attention = "softmax",
    max_length: MaxLength | None = None,
    dimension: Dimension | None = None,
    units: Units | None = None,
    seed: Seed = 0,
) -> Network:
    """Return a transformer of one head and one layer of units that answers every query of the spec."""
    questions, answers = len(spec.facts), len(spec.answers)
    fact_storage.check_score_count(questions, answers)
    size, count = layered_sizes(questions, answers, dimension, units)
    rng = np.random.default_rng(seed)
    codes = FactCodes.draw(spec, size, rng)
    memory = fact_units(codes, count, rng)
    change = "choose more --units, a larger --dimension or another --seed"
    margin = fact_storage.require_perfect_recall(memory, f"dimension {size}, {count} units and seed {seed}", change)
    name = f"{questions} facts in {count} units, {attention}"
    net = Builder(name, (BEGIN, *spec.vocabulary), _length(spec, max_length), attention)
    code = _embedded(net, spec, codes, rng)
    flags = np.zeros((len(net.inputs), 1))
    flags[1 : 1 + len(spec.subjects) + len(spec.relations)] = 1.0
    named = Test(Affine.constant(1.0), Affine.copy(net.embed("named", Flag(), flags)), 1.0)
    key = select(net, [named], Affine.copy(code), Space("key", numbers(size, 1.0)), sink="none")
    recalled = add_units(net, key, memory)
    facts = {"variant": "facts", "facts": questions, "dimension": size, "units": count, "seed": seed}
    return compared(net, memory, recalled, margin, spec.answers, "facts in units", facts)


@construction(
    "facts-heads",
    "heads that store all answers about their subjects, and no units",
    sizes_in_heads,
    unproved="known only within bounds",
)
def facts_in_heads(
    spec: Facts,
    *,
    attention: Attention = "softmax",
    max_length: MaxLength | None = None,
    dimension: Dimension | None = None,
    seed: Seed = 0,
) -> Network:
    """Return a transformer of one layer of heads and no units that answers every query of the spec."""
    _refuse_confusions(spec)
    size = dimension or heads_dimension(spec)
    rng = np.random.default_rng(seed)
    codes = FactCodes.draw(spec, size, rng)
    memory, by_subject, by_relation = fact_heads(codes)
    margin = fact_storage.require_perfect_recall(
        memory, f"dimension {size} and seed {seed}", "choose a larger --dimension or another --seed"
    )
    name = f"{len(spec.facts)} facts in heads, {attention}"
    net = Builder(name, (BEGIN, *spec.vocabulary), _length(spec, max_length), attention)
    code = _embedded(net, spec, codes, rng)
    stores = [
        *_stores("subjects", spec.subjects, codes.subjects, by_subject),
        *_stores("relations", spec.relations, codes.relations, by_relation),
    ]
    blocks = np.repeat(np.eye(len(stores)), [len(stored.codes) for stored in stores], axis=0)
    table = np.zeros((len(net.inputs), len(stores)))
    table[1 : 1 + len(blocks)] = blocks
    kinds = net.embed("block", OneHot(tuple(stored.name for stored in stores), void=True), table)
    recalled = Space("recalled", numbers(size, sum(float(np.abs(stored.contents).max()) for stored in stores)))
    recall(net, code, kinds, stores, recalled)
    facts = {"variant": "facts-heads", "facts": len(spec.facts), "dimension": size, "seed": seed}
    return compared(net, memory, recalled, margin, spec.answers, "facts in heads", facts)


def _embedded(net: Builder, spec: Facts, codes: FactCodes, rng: np.random.Generator) -> Space:
    """Embed the codes of all words, those of fillers drawn here; BOS is zero. Return their space."""
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
    """Return the words per head: few enough that their random codes are far from linearly dependent."""
    return max(1, min(MAX_BLOCK, dimension // 4))


def _length(spec: Facts, max_length: int | None) -> int:
    if max_length is not None and max_length < 2:
        raise BuildRefused(f"a question has two words: --max-length must be at least 2, is {max_length}")
    return max_length or spec.length


def _refuse_confusions(spec: Facts) -> None:
    """Refuse facts that heads alone confuse: an answer about a subject that fits another of its relations, too."""
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
                        "of their own, or use --construction facts"
                    )
