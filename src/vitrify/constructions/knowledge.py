r"""Knowledge becomes one layer of attention and one mixture of experts: an expert for each task.

In the spirit of Nandakumar, Xiang, Yao, Li & Liu (2026, arXiv 2606.14398). A head for each offset copies the word that
stands so many places back, so that every position holds its last words as one-hot vectors, with the beginning of the
sequence among them. The **router** sends a query to the expert of its task. With a hidden layer (`hidden`) it has one
unit for each template, which is 1 iff the words around the slot are the template's, and the unit votes for its task;
without one (`linear`) the words vote by themselves, where a linear programme finds votes that work. The **expert** of a
task with templates $T$ and facts $D$ has one hidden layer:

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

Keys of several words: with $M$ the lengths of keys, $D_m$ the facts whose keys have $m$ words, and $S$ the offsets of
slots, an expert has $\lvert T\rvert\lvert M\rvert + \lvert D_1\rvert + \lvert S\rvert \sum_{m>1} \lvert D_m\rvert$
units, and the router a unit for each template and length. Where the words of a longer key could be taken apart in
another way, a template gets a unit for each of these keys instead of one (see `spec/knowledge_patterns.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.errors import BuildRefused
from vitrify.kit.gadgets import Question, asking
from vitrify.kit.heads import shift
from vitrify.kit.network import Affine, Builder, Experts, Network, Readout, Space, Units
from vitrify.kit.positions import CodeName, position_code
from vitrify.net.architecture import Output
from vitrify.net.spaces import OneHot, Reals
from vitrify.net.transformer import AttentionKind
from vitrify.spec.knowledge import Knowledge, Task
from vitrify.spec.knowledge_files import NONE
from vitrify.spec.knowledge_patterns import Group, Sets, expert_levels, key_sets, router_levels, sets
from vitrify.spec.knowledge_routes import LinearRoute, linear_route
from vitrify.spec.ngram import BEGIN

Floats = NDArray[np.float64]
Router = Literal["hidden", "linear"]

LOGIT_ERROR = 0.2  # what soft attention may do to a score: a value and none are at least 1/2 apart
MOST_ENTRIES = 1 << 26  # numbers of the largest array of the heads
FEW = 2_000  # constraints for which a linear router is looked for even if nobody asks


@dataclass(frozen=True, eq=False)
class Asked:
    """One hidden unit in words: the words that it wants at some offsets, and what it writes."""

    name: str
    words: Sets
    writes: Mapping[str, float]
    count: bool = False


def knowledge(
    spec: Knowledge,
    *,
    router: Router = "hidden",
    attention: AttentionKind = "softmax",
    max_length: int | None = None,
    positions: CodeName = "dyadic",
) -> Network:
    """A transformer of one block that answers every query of the spec, and says *none* to anything else."""
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
    net.add(Experts("tasks", chosen, units, lead=1.0 if route is None or not voting else route.lead))
    return net.network(
        Output("class", (NONE, *spec.values)),
        Readout(((answer, np.eye(answer.size)),), np.zeros(answer.size), {answer: LOGIT_ERROR}),
        {
            "construction": "knowledge",
            "shape": router,
            "attention": attention,
            "positions": positions,
            "tasks": len(spec.tasks),
            "templates": sum(len(task.templates) for task in spec.tasks),
            "facts": sum(len(task.facts) for task in spec.tasks),
            "linear router": _said(spec, route),
            "source": "in the spirit of Nandakumar, Xiang, Yao, Li & Liu 2026, arXiv 2606.14398",
        },
        reuse=False,  # no units but the experts' and the router's
    )


def sizes(spec: Knowledge) -> dict[str, int | list[int]]:
    """What the formulas promise: heads, units of each expert, units of the hidden router."""
    experts = []
    for task in spec.tasks:
        levels = expert_levels(task)
        groups = _groups(task)
        templates = sum(len(pattern.keys) if level == 2 else 1 for pattern, level in levels.items())
        short = sum(len(key) == 1 for key, _ in task.facts) if any(m == 1 for _, m in groups) else 0
        long = sum(sum(len(key) == m for key, _ in task.facts) for _, m in groups if m > 1)
        experts.append(templates + short + long)
    routed = [pair for found in router_levels(spec) for pair in found.items()]
    router = sum(len(pattern.keys) if level == 2 else 1 for pattern, level in routed)
    return {"heads": spec.longest, "experts": experts, "router": router}


def expert(task: Task) -> list[Asked]:
    """The hidden units of a task's expert: templates, then facts."""
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
                found = value.get(_key_at(known, group))
                if found is not None:
                    writes[found] = writes.get(found, 0.0) - 1.0
            rows.append(Asked(name, case, {symbol: weight for symbol, weight in writes.items() if weight}))
    for key, found in task.facts:
        places = [group for group in groups if group[1] == len(key)]
        name = f"key: {' '.join(key)}"
        if len(key) == 1 and places:
            anywhere = {offset: words for group in places for offset, words in key_sets(key, group).items()}
            rows.append(Asked(name, anywhere, {found: 1.0}, count=True))
        elif len(key) > 1:
            several = len(places) > 1
            rows += [Asked(name + (f" {g[0]} back" if several else ""), key_sets(key, g), {found: 1.0}) for g in places]
    return rows


def _groups(task: Task) -> list[Group]:
    """Where keys are looked for: the slots of the templates that have one unit for all keys of a length."""
    return sorted({pattern.group for pattern, level in expert_levels(task).items() if level < 2})


def _key_at(known: Mapping[int, str], group: Group) -> tuple[str, ...]:
    """The words at the place of a key, in order; no key at all where some are not known."""
    offsets = range(sum(group) - 1, group[0] - 1, -1)
    return tuple(known[offset] for offset in offsets) if all(offset in known for offset in offsets) else ()


def _routed(spec: Knowledge) -> list[list[Asked]]:
    """The hidden units of the router, task by task."""
    rows = []
    for task, levels in zip(spec.tasks, router_levels(spec), strict=True):
        cases = [(pattern, case) for pattern, level in levels.items() for case in sets(task, pattern, level)]
        rows.append([Asked(f"{task.name}: {' '.join(task.templates[p.template])}", case, {}) for p, case in cases])
    return rows


def _slots(net: Builder, asked: Iterable[Sets], positions: CodeName) -> list[Space]:
    """The words that stand 0, 1, 2 … places back; each head copies what some unit asks for at its offset."""
    from scipy.sparse import eye_array

    words = net.embed("word", OneHot(net.inputs), eye_array(len(net.inputs), format="csr"))
    wanted: dict[int, set[str]] = {}
    for case in asked:
        for offset, allowed in case.items():
            wanted.setdefault(offset, set()).update(allowed)
    farthest = max(wanted)
    copied = [len(wanted.get(back, ())) for back in range(1, farthest + 1)]
    largest, width = max(copied), len(net.inputs) + sum(copied)
    if farthest * width * largest > MOST_ENTRIES:
        raise BuildRefused(
            f"heads that copy up to {largest} words from each of {farthest} places take arrays of "
            f"{farthest * width * largest:.1e} numbers, at most {MOST_ENTRIES:.1e} are built: use fewer keys, or "
            "templates that end with their slot, so that no key has to be copied"
        )
    code = position_code(positions, net.max_length, range(1, farthest + 1))
    where = net.place("position", code.kind(), code.table())
    slots = [words]
    for back in range(1, farthest + 1):
        chosen = [place for place, word in enumerate(net.inputs) if word in wanted.get(back, ())]
        kind = OneHot(tuple(net.inputs[place] for place in chosen), void=True)
        slots.append(shift(net, words, back, code, where, name=f"{back} back", only=(chosen, kind)))
    return slots


def _questions(rows: Iterable[Asked], slots: list[Space]) -> list[Question]:
    place = [_numbers(slot) for slot in slots]
    return [
        Question(
            row.name,
            {slots[offset]: sorted(place[offset][word] for word in words) for offset, words in row.words.items()},
            row.count,
        )
        for row in rows
    ]


def _numbers(slot: Space) -> dict[str, int]:
    assert isinstance(slot.kind, OneHot)
    return {word: number for number, word in enumerate(slot.kind.values)}


def _units(task: Task, rows: list[Asked], slots: list[Space], answer: Space, place: Mapping[str, int]) -> Units:
    outputs = np.zeros((len(rows), answer.size))
    for number, row in enumerate(rows):
        for symbol, weight in row.writes.items():
            outputs[number, place[symbol]] = weight
    groups = len(_groups(task))
    constant = np.zeros(answer.size)
    constant[place[NONE]] = groups + 0.5
    matches = 1 + groups  # one template, and a key at each place
    return asking(task.name, _questions(rows, slots), answer, outputs, constant=constant, matches=matches)


def _template_votes(spec: Knowledge, routed: list[list[Asked]], slots: list[Space]) -> Units:
    scores = Space("scores", Reals(tuple(task.name for task in spec.tasks), 0.0, float(max(map(len, routed)))))
    outputs = np.repeat(np.eye(len(routed)), [len(rows) for rows in routed], axis=0)
    every = [row for rows in routed for row in rows]
    return asking("router", _questions(every, slots), scores, outputs, matches=max(map(len, routed)))


def _votes(route: LinearRoute, slots: list[Space]) -> Affine:
    place = [_numbers(slot) for slot in slots]
    matrices = {slot: np.zeros((slot.size, len(route.votes))) for slot in slots}
    for (offset, word), votes in zip(route.features, route.votes.T, strict=True):
        matrices[slots[offset]][place[offset][word]] = votes
    return Affine.of({slot: matrix for slot, matrix in matrices.items() if matrix.any()}, np.zeros(len(route.votes)))


def _linear(spec: Knowledge, *, must: bool) -> LinearRoute | None:
    """A linear router, if it is asked for or cheap to look for."""
    route = linear_route(spec) if must or _constraints(spec) <= FEW else None
    if must and route is None:
        raise BuildRefused(
            "no linear router sends every query to its task (the linear programme over all queries has no solution): "
            "use --shape hidden"
        )
    return route


def _said(spec: Knowledge, route: LinearRoute | None) -> str:
    if route is not None:
        return f"exists (a linear programme of {route.constraints} constraints found one)"
    return "none exists" if _constraints(spec) <= FEW else "not looked for: --shape linear decides it"


def _constraints(spec: Knowledge) -> int:
    return (len(spec.tasks) - 1) * sum(len(task.templates) * len(task.lengths) for task in spec.tasks)


def _make(router: Router, spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Knowledge)
    return knowledge(
        spec,
        router=router,
        attention=settings.attention,
        max_length=settings.max_length,
        positions=settings.positions or "dyadic",
    )


CONSTRUCTIONS = (
    Construction(
        "hidden",
        Knowledge,
        "an expert for each task, chosen by one hidden unit per template",
        lambda spec, settings: _make("hidden", spec, settings),
        default=True,
        choices=("attention", "max_length", "positions"),
    ),
    Construction(
        "linear",
        Knowledge,
        "an expert for each task, chosen by votes of single words",
        lambda spec, settings: _make("linear", spec, settings),
        choices=("attention", "max_length", "positions"),
    ),
)
