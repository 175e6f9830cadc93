r"""One mixture-of-experts layer stores templates and dictionaries, one expert per task, as large as its task.

Statement: For every set of tasks, each given by templates with one slot and a dictionary of answers, one attention
layer and one mixture of experts with top-1 routing answer every query without error. Each query is routed to the expert
of its task. An expert has $\lvert T\rvert + \lvert D\rvert$ hidden units (for keys of one word) and depends on its own
task only.
Why: One unit per template sees the words around its slot, one unit per fact sees its key; both together give an answer,
either alone none. Templates vote for their task, so the right expert wins by 1. A linear router on words exists only
where a linear program has a solution; it has none for the tasks `ab#, cd#` and `ad#, cb#`.
Checked: Every query of 20 random worlds (some with keys of two words, some whose keys are words of templates; linear
and hidden routers; the three kinds of attention), of the world without a linear router, and of one with 200 tasks and
20,000 facts: routing and answers. In worlds of at most 1,000 queries: every task on every expert (the right one answers
all, any other none), and a task is added while the arrays of other experts stay bit-identical. Templates with one word
exchanged get no answer.
Not checked: How routing is learned (claim L14). The source's own sizes and conditions on templates were read in its
abstract only.
Source: Nandakumar, Xiang, Yao, Li & Liu 2026, arXiv 2606.14398 [A]; the weights are our own derivation.
Saboteur: The first expert loses one fact.
"""

from __future__ import annotations

import numpy as np

from vitrify.certification.oracles.knowledge import forced, watched
from vitrify.certification.oracles.right import logit_margins
from vitrify.claims._figures import bars, show
from vitrify.claims._nets import ATTENTIONS, Domain, Evidence, Method, Quantity, witnessed, zeroed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.catalogue import build
from vitrify.constructions.knowledge import expert_units, router_units
from vitrify.net.inference import batch_logits, batch_of, encode
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.spec.memory.knowledge import NONE, Knowledge, KnowledgeTask, large_world, random_world, xor_world
from vitrify.spec.memory.knowledge_routes import linear_route

MAX_ISOLATION_QUERIES = 1_000  # worlds with more skip the tests of every expert on every task, and of a new task


def subjects() -> Subjects:
    for seed in range(20):
        long_keys, shared = 0.4 if seed % 5 == 0 else 0.0, 0.3 if seed % 3 == 0 else 0.0
        spec = random_world(seed, anchored=seed % 4 == 0, long_keys=long_keys, shared_words=shared)
        router, attention = ("hidden", "linear")[seed % 2], ATTENTIONS[seed % 3]
        weights = build(spec, router, attention=attention)
        data = {"router": router, "linear": True if seed % 4 == 0 else None}
        yield Subject(f"random world {seed}, {router}, {attention}", spec, weights, data)
    for name, spec, linear in (("XOR world", xor_world(), False), ("200 tasks, 20,000 facts", large_world(), None)):
        yield Subject(name, spec, build(spec, "hidden"), {"router": "hidden", "linear": linear})


def check(subject: Subject) -> Evidence:
    spec, weights = subject.spec, subject.weights
    (block,) = weights.architecture.blocks
    short = all(len(key) == 1 for task in spec.tasks for key, _ in task.facts)
    counted = [len(task.templates) + len(task.facts) for task in spec.tasks]
    wrong, routes, margin, witness = _answered(spec, weights)
    units, hidden = sum(counted) if short else sum(map(expert_units, spec.tasks)), subject.data["router"] == "hidden"
    criteria = [
        Quantity("wrong answers", wrong, 0, "="),
        Quantity("wrong routes", routes, 0, "="),
        Quantity("least margin of the right expert is 1 within 1 %", margin >= 0.99, True, "="),
        Quantity("heads", weights.sizes.heads, spec.longest, "="),
        Quantity("units of experts", sum(expert.units for expert in block.experts), units, "="),
        Quantity("units of the router", block.router, router_units(spec) if hidden else 0, "="),
        Quantity("broken templates that get an answer", _answered_when_broken(spec, weights), 0, "="),
    ]
    if len(spec.queries) <= MAX_ISOLATION_QUERIES:
        changed = _changed(spec, weights, subject.data["router"])
        criteria.append(Quantity("isolation matrix is the identity", _isolated(spec, weights), True, "="))
        criteria.append(Quantity("expert arrays that a new task changes", changed, 0, "="))
    if subject.data["linear"] is not None:
        criteria.append(Quantity("linear router exists", linear_route(spec) is not None, subject.data["linear"], "="))
    queries = Domain("queries", Method.EXHAUSTIVE, len(spec.queries))
    stated = Quantity("least margin of the right expert", margin)
    return witnessed(witness, len(spec.queries), queries).adding(*criteria, stated)


def sabotage(subject: Subject) -> Subject:
    (block,) = subject.weights.architecture.blocks
    return zeroed(subject, "blocks.0.moe.experts.0.W_out", block.experts[0].units - 1)


def _answered(spec: Knowledge, weights: Weights) -> tuple[int, int, float, dict[str, object] | None]:
    """Return the wrong answers and routes in the first batch that has some, the least margin, and one wrong answer."""
    net = weights.architecture
    symbols, least = np.array(net.output.symbols), np.inf
    right = _right(spec, weights)
    for queries, logits, scores in watched(weights, right):
        tasks, values = (np.array(column) for column in zip(*map(right.__getitem__, queries), strict=True))
        least = min(least, float(logit_margins(scores, tasks).min()))
        answers = symbols[logits.argmax(axis=-1)]
        wrong = np.flatnonzero(answers != values).tolist()
        lost = int((scores.argmax(axis=1) != tasks).sum())
        if wrong or lost:
            first = (wrong or [0])[0]
            words = [net.inputs[i] for i in queries[first]]
            both = {"expected": str(values[first]), "actual": str(answers[first])}
            return len(wrong), lost, least, {"query": words, **both, "wrong routes": lost}
    return 0, 0, least, None


def _right(spec: Knowledge, weights: Weights) -> dict[tuple[int, ...], tuple[int, str]]:
    """The task and the value of every query."""
    return {
        tuple(encode(weights.architecture, words)): (task, spec.tasks[task].facts[fact][1])
        for words, (task, _, fact) in spec.queries.items()
    }


def _isolated(spec: Knowledge, weights: Weights) -> bool:
    """Return whether each expert, when forced, answers all queries of its own task and none of any other."""
    net, right = weights.architecture, _right(spec, weights)
    tokens, lengths = batch_of(net, [*right])
    tasks, values = (np.array(column) for column in zip(*right.values(), strict=True))
    for expert in range(len(spec.tasks)):
        last = forced(weights, tokens, expert)[np.arange(len(right)), lengths - 1]
        if (np.array(net.output.symbols)[last.argmax(axis=-1)] != np.where(tasks == expert, values, NONE)).any():
            return False
    return True


def _changed(spec: Knowledge, weights: Weights, router: str) -> int:
    """Return the number of expert arrays that differ after one more task was added."""
    new = KnowledgeTask(
        "new task", (("something", "new", "about", "#"),), (*spec.tasks[0].facts, (("novelty",), "a new value"))
    )
    grown = build(Knowledge((*spec.tasks, new)), router, attention=weights.about["attention"])
    names = [name for name in weights.arrays if ".experts." in name]
    pairs = [(dense(weights.arrays[name]), dense(grown.arrays[name])) for name in names]
    return sum(a.shape != b.shape or a.tobytes() != b.tobytes() for a, b in pairs)


def _answered_when_broken(spec: Knowledge, weights: Weights) -> int:
    """Queries with one word of the template exchanged for one that no template has there: all must be none."""
    rng = np.random.default_rng(0)
    net, vocabulary = weights.architecture, spec.vocabulary
    broken = []
    for task in spec.tasks:
        for template in task.templates:
            key = task.facts[int(rng.integers(len(task.facts)))][0]
            for place, old in enumerate(template):
                if old != "#":
                    other = vocabulary[int(rng.integers(len(vocabulary)))]
                    changed = (*template[:place], other, *template[place + 1 :])
                    slot = changed.index("#")
                    broken.append((*changed[:slot], *key, *changed[slot + 1 :]))
    none = [words for words in broken if spec.answer(words) is None]
    tokens, lengths = batch_of(net, [encode(net, words) for words in none])
    last = batch_logits(weights, tokens)[np.arange(len(none)), lengths - 1]
    return int((np.array(net.output.symbols)[last.argmax(axis=-1)] != NONE).sum())


FIGURE = show(
    bars({"units of the experts": "units of experts", "units of the router": "units of the router"}, "units", "y")
)
CLAIM = Claim(
    subjects, check, sabotage, id="R5", standing="theorem", certified="sampled", budget_seconds=60, figure=FIGURE
)
