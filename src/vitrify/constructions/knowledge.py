r"""Knowledge becomes one layer of attention and one mixture of experts: an expert for each task.

In the spirit of Nandakumar, Xiang, Yao, Li & Liu (2026, arXiv 2606.14398). A head for each offset copies the word that
many positions back, so that every position holds its last words, BOS included, as one-hot vectors. The **router** sends
a query to the expert of its task. With a hidden layer (`hidden`) it has one unit for each template, which is 1 iff the
words around the slot are the template's, and adds 1 to the score of its task. Without one (`linear`) the scores are
linear in the words, by weights that a linear program finds, if there are any. The **expert** of a task with templates
$T$ and facts $D$ has one hidden layer:

- a unit for each fact says whether its key stands in a slot, and writes 1 for its value;
- a unit for each template is 1 iff the words around its slot are there. Without one the answer is *none*, with a score
  of $g + \tfrac12$, $g$ the number of places where keys are looked for; the unit takes $g$ of it away, and 1 from the
  value of every key that is one of the template's own words.

So a query gets 1 for its value, 0 for all others and ½ for *none*; all else gets more for *none* than for any value.
That holds after every prefix of every sequence of words, and nothing in an expert depends on the other tasks.

| part | size |
| --- | --- |
| heads | one for each offset up to the length of the longest query, in one layer |
| expert | $\lvert T\rvert + \lvert D\rvert$ units |
| router | one unit for each template, none if linear |
| width | at most one dimension for each word and BOS at each offset, one for each answer, the position code |

Keys of several words: with $M$ the lengths of keys, $D_m$ the facts whose keys have $m$ words, and $S$ the offsets of
slots, an expert has $\lvert T\rvert\lvert M\rvert + \lvert D_1\rvert + \lvert S\rvert \sum_{m>1} \lvert D_m\rvert$
units, and the router a unit for each template and length. Where the words of a longer key could be taken apart in
another way, a template gets a unit for each of these keys instead of one (see `spec/memory/knowledge_patterns.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, Positions, construction
from vitrify.kit.gadgets.indicators import Indicator, indicators
from vitrify.kit.heads.shift import shift
from vitrify.kit.network import Affine, Builder, Experts, Network, Output, Readout, Space, Units
from vitrify.kit.positions import CodeName, dimensions, position_code
from vitrify.net.spaces import OneHot, Reals
from vitrify.spec.memory.knowledge import NONE, Knowledge, KnowledgeTask
from vitrify.spec.memory.knowledge_patterns import Group, Sets, expert_levels, key_sets, router_levels, sets
from vitrify.spec.memory.knowledge_routes import LinearRoute, linear_route
from vitrify.spec.ngrams.model import BEGIN

Router = Literal["hidden", "linear"]

LOGIT_ERROR = 0.2  # error of a score by soft attention: a value and none are at least 1/2 apart
MAX_ENTRIES = 1 << 26  # of the largest array of the heads
MAX_CONSTRAINTS = 2_000  # with at most these, a linear router is searched for even if it is not requested


@dataclass(frozen=True, eq=False)
class WordTest:
    """One hidden unit: the words that it requires at some offsets, and the weight it adds to each answer."""

    name: str
    words: Sets
    writes: Mapping[str, float]
    count: bool = False


def expert(task: KnowledgeTask) -> list[WordTest]:
    """Return the hidden units of a task's expert: templates, then facts."""
    groups = _groups(task)
    value = dict(task.facts)
    rows = []
    for pattern, level in expert_levels(task).items():
        template = " ".join(task.templates[pattern.template])
        for number, case in enumerate(sets(task, pattern, level)):
            known = {offset: word for offset, (word, *more) in case.items() if not more}
            writes = {NONE: -float(len(groups))} if groups else {}
            name = f"template: {template}" + (f" ({pattern.group[1]} words)" if pattern.group[1] > 1 else "")
            if level == 2:
                key = task.facts[pattern.keys[number]][0]
                name = f"template: {template}, key: {' '.join(key)}"
                writes[value[key]] = 1.0
            else:
                known = {offset: word for offset, word in known.items() if offset not in pattern.slot}
            for group in groups:
                answer = value.get(_key_at(known, group))
                if answer is not None:
                    writes[answer] = writes.get(answer, 0.0) - 1.0
            rows.append(WordTest(name, case, {symbol: weight for symbol, weight in writes.items() if weight}))
    for key, answer in task.facts:
        places = [group for group in groups if group[1] == len(key)]
        name = f"key: {' '.join(key)}"
        if len(key) == 1 and places:
            anywhere = {offset: words for group in places for offset, words in key_sets(key, group).items()}
            rows.append(WordTest(name, anywhere, {answer: 1.0}, count=True))
        elif len(key) > 1:
            several = len(places) > 1
            rows += [
                WordTest(name + (f" {g[0]} back" if several else ""), key_sets(key, g), {answer: 1.0}) for g in places
            ]
    return rows


def _groups(task: KnowledgeTask) -> list[Group]:
    """Return the slots at which keys are tested: those of templates that have one unit for all keys of a length."""
    return sorted({pattern.group for pattern, level in expert_levels(task).items() if level < 2})


def _key_at(known: Mapping[int, str], group: Group) -> tuple[str, ...]:
    """Return the words in the slot of a key, in order; empty if some are not known."""
    offsets = range(sum(group) - 1, group[0] - 1, -1)
    return tuple(known[offset] for offset in offsets) if all(offset in known for offset in offsets) else ()


def _routed(spec: Knowledge) -> list[list[WordTest]]:
    """Return the hidden units of the router, task by task."""
    rows = []
    for task, levels in zip(spec.tasks, router_levels(spec), strict=True):
        cases = [(pattern, case) for pattern, level in levels.items() for case in sets(task, pattern, level)]
        rows.append([WordTest(f"{task.name}: {' '.join(task.templates[p.template])}", case, {}) for p, case in cases])
    return rows


def _slots(net: Builder, asked: Iterable[Sets], positions: CodeName) -> list[Space]:
    """Return the spaces of the words 0, 1, 2 … positions back; each head copies the words that units test there."""
    from scipy.sparse import eye_array

    words = net.embed("word", OneHot(net.inputs), eye_array(len(net.inputs), format="csr"))
    wanted: dict[int, set[str]] = {}
    for case in asked:
        for offset, allowed in case.items():
            wanted.setdefault(offset, set()).update(allowed)
    farthest = max(wanted)
    copied = [len(wanted.get(back, ())) for back in range(1, farthest + 1)]
    largest, width = max(copied), len(net.inputs) + sum(copied)
    if farthest * width * largest > MAX_ENTRIES:
        raise BuildRefused(
            f"heads that copy up to {largest} words from each of {farthest} positions take arrays of "
            f"{farthest * width * largest:.1e} entries, at most {MAX_ENTRIES:.1e} are built: use fewer keys, or "
            "templates that end with their slot, so that no key has to be copied"
        )
    code = position_code(positions, net.max_length, range(1, farthest + 1))
    where = net.embed_position("position", code.kind(), code.table())
    slots = [words]
    for back in range(1, farthest + 1):
        chosen = [place for place, word in enumerate(net.inputs) if word in wanted.get(back, ())]
        kind = OneHot(tuple(net.inputs[place] for place in chosen), void=True)
        slots.append(shift(net, words, back, code, where, name=f"{back} back", only=(chosen, kind)))
    return slots


def _tests(rows: Iterable[WordTest], slots: list[Space]) -> list[Indicator]:
    place = [_numbers(slot) for slot in slots]
    return [
        Indicator(
            row.name,
            {slots[offset]: sorted(place[offset][word] for word in words) for offset, words in row.words.items()},
            row.count,
        )
        for row in rows
    ]


def _numbers(slot: Space) -> dict[str, int]:
    assert isinstance(slot.kind, OneHot)
    return {word: number for number, word in enumerate(slot.kind.values)}


def _units(
    task: KnowledgeTask, rows: list[WordTest], slots: list[Space], answer: Space, place: Mapping[str, int]
) -> Units:
    outputs = np.zeros((len(rows), answer.size))
    for number, row in enumerate(rows):
        for symbol, weight in row.writes.items():
            outputs[number, place[symbol]] = weight
    groups = len(_groups(task))
    constant = np.zeros(answer.size)
    constant[place[NONE]] = groups + 0.5
    matches = 1 + groups  # one template, and a key in each slot
    return indicators(task.name, _tests(rows, slots), answer, outputs, constant=constant, matches=matches)


def _template_votes(spec: Knowledge, routed: list[list[WordTest]], slots: list[Space]) -> Units:
    scores = Space("scores", Reals(tuple(task.name for task in spec.tasks), 0.0, float(max(map(len, routed)))))
    outputs = np.repeat(np.eye(len(routed)), [len(rows) for rows in routed], axis=0)
    tests = _tests((row for rows in routed for row in rows), slots)
    return indicators("router", tests, scores, outputs, matches=max(map(len, routed)))


def _votes(route: LinearRoute, slots: list[Space]) -> Affine:
    place = [_numbers(slot) for slot in slots]
    matrices = {slot: np.zeros((slot.size, len(route.votes))) for slot in slots}
    for (offset, word), votes in zip(route.features, route.votes.T, strict=True):
        matrices[slots[offset]][place[offset][word]] = votes
    return Affine.of({slot: matrix for slot, matrix in matrices.items() if matrix.any()}, np.zeros(len(route.votes)))


def _linear(spec: Knowledge, *, must: bool) -> LinearRoute | None:
    """Return a linear router, if it is required (`must`) or cheap to search for; None if there is none."""
    route = linear_route(spec) if must or _constraints(spec) <= MAX_CONSTRAINTS else None
    if must and route is None:
        raise BuildRefused(
            "no linear router sends every query to its task (the linear program over all queries has no solution): "
            "use --construction hidden"
        )
    return route


def _described(spec: Knowledge, route: LinearRoute | None) -> str:
    if route is not None:
        return f"exists (a linear program of {route.constraints} constraints has a solution)"
    return "none exists" if _constraints(spec) <= MAX_CONSTRAINTS else "not tried: --construction linear decides it"


def _constraints(spec: Knowledge) -> int:
    return (len(spec.tasks) - 1) * sum(len(task.templates) * len(task.lengths) for task in spec.tasks)


def expert_units(task: KnowledgeTask) -> int:
    """Return the hidden units of the expert of a task."""
    groups = _groups(task)
    templates = sum(len(pattern.keys) if level == 2 else 1 for pattern, level in expert_levels(task).items())
    short = sum(len(key) == 1 for key, _ in task.facts) if any(m == 1 for _, m in groups) else 0
    long = sum(sum(len(key) == m for key, _ in task.facts) for _, m in groups if m > 1)
    return templates + short + long


def router_units(spec: Knowledge) -> int:
    """Return the units of a router that has some."""
    levels = [pair for levels_of_task in router_levels(spec) for pair in levels_of_task.items()]
    return sum(len(pattern.keys) if level == 2 else 1 for pattern, level in levels)


def hidden_sizes(spec: Knowledge, *, max_length: int | None, positions: CodeName) -> DeclaredSizes:
    """Return depth, heads and units, and a bound of the width."""
    return _sizes(spec, router_units(spec), max_length, positions)


def linear_sizes(spec: Knowledge, *, max_length: int | None, positions: CodeName) -> DeclaredSizes:
    """Return the sizes of the same without units of the router."""
    return _sizes(spec, 0, max_length, positions)


def _sizes(spec: Knowledge, router: int, max_length: int | None, positions: CodeName) -> DeclaredSizes:
    units, reach = sum(map(expert_units, spec.tasks)) + router, spec.longest
    place = dimensions(positions, max_length or 2 * reach, range(1, reach + 1)) + 1
    width = (reach + 1) * (len(spec.vocabulary) + 1) + len(spec.values) + 1 + place
    return DeclaredSizes({"layers": 1, "heads": reach, "units": units}, at_most={"d_model": width})


@construction(
    "hidden",
    "an expert for each task, chosen by one hidden unit per template",
    hidden_sizes,
    default=True,
    router="hidden",
)
@construction("linear", "an expert for each task, chosen by votes of single words", linear_sizes, router="linear")
def knowledge(
    spec: Knowledge,
    *,
    attention: Attention = "softmax",
    max_length: MaxLength | None = None,
    positions: Positions = "dyadic",
    router: Router = "hidden",
) -> Network:
    """Return a transformer of one block that answers every query of the spec, and *none* to anything else."""
    length = max_length or 2 * spec.longest
    if length < spec.longest:
        raise BuildRefused(f"the longest query has {spec.longest} words: --max-length must be at least that")
    experts = [expert(task) for task in spec.tasks]
    routed = _routed(spec)
    route = _linear(spec, must=router == "linear")
    net = Builder(f"knowledge, {router} router, {attention}", (BEGIN, *spec.vocabulary), length, attention)
    voting = list(route.features) if route is not None and router == "linear" else []
    asked = [row.words for rows in (*experts, *([] if voting else routed)) for row in rows]
    slots = _slots(net, asked + [{offset: frozenset([word])} for offset, word in voting], positions)
    answer = Space("answer", Reals((NONE, *spec.values), -float(len(spec.vocabulary)), float(len(spec.vocabulary))))
    place = {value: number for number, value in enumerate((NONE, *spec.values))}
    chosen = _votes(route, slots) if voting and route is not None else _template_votes(spec, routed, slots)
    units = tuple(_units(task, rows, slots, answer, place) for task, rows in zip(spec.tasks, experts, strict=True))
    net.add(Experts("tasks", chosen, units, router_margin=1.0 if route is None or not voting else route.margin))
    return net.network(
        Output("class", (NONE, *spec.values)),
        Readout(((answer, np.eye(answer.size)),), np.zeros(answer.size), {answer: LOGIT_ERROR}),
        "knowledge",
        {
            "variant": router,
            "positions": positions,
            "tasks": len(spec.tasks),
            "templates": sum(len(task.templates) for task in spec.tasks),
            "facts": sum(len(task.facts) for task in spec.tasks),
            "linear router": _described(spec, route),
        },
        source="in the spirit of Nandakumar, Xiang, Yao, Li & Liu 2026, arXiv 2606.14398",
        reuse=False,  # no units but the experts' and the router's
    )
