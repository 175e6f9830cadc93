r"""One layer of experts stores templates and dictionaries: a task each, as large as the task.

Statement: tasks that are asked for by templates with one slot and answered from dictionaries are stored without error
in one layer of attention and one mixture of experts with top-1 routing; each query goes to the one expert of its task;
an expert has $\lvert T\rvert + \lvert D\rvert$ hidden units (keys of one word) and depends on its own task only.
Why: a unit for each template sees the words around its slot, a unit for each fact sees its key; the two together are an
answer, either alone is none. Templates vote for their tasks, so the right expert leads by 1. Words can vote by
themselves only where a linear programme has a solution, and it has none for the tasks `ab#, cd#` and `ad#, cb#`.
Checked: every query of 20 random worlds with shared keys (some with keys of two words, some whose keys are words of
templates), of the world without a linear router, and of one with 200 tasks and 20,000 facts: routing and answers; every
task asked of every expert (the right one answers all, any other none); other experts removed; a task added, and the
arrays of the experts that were there compared bit for bit; templates with one word exchanged.
Source: Nandakumar, Xiang, Yao, Li & Liu 2026, arXiv 2606.14398 [A]; the weights here are our own derivation.
Saboteur: the first expert forgets one fact.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.certify.knowledge_oracle import forced, leads, watched
from vitrify.claims._nets import ATTENTIONS, with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.knowledge import knowledge, sizes
from vitrify.kit import assemble
from vitrify.net.run import batch_logits, batch_of, encode
from vitrify.net.sparse import dense
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.knowledge import Knowledge, Task
from vitrify.spec.knowledge_files import NONE
from vitrify.spec.knowledge_routes import linear_route
from vitrify.spec.worlds import large_world, random_world, xor_world

FEW = 1_000  # queries up to which every expert is asked about every task, and a task is added


def subjects() -> Iterator[Subject]:
    """20 random worlds under every attention, half of them with linear routers; the XOR world; a large one."""
    for seed in range(20):
        spec = random_world(
            seed,
            anchored=seed % 4 == 0,
            long_keys=0.4 if seed % 5 == 0 else 0.0,
            shared_words=0.3 if seed % 3 == 0 else 0.0,
        )
        router, attention = ("hidden", "linear")[seed % 2], ATTENTIONS[seed % 3]
        weights = assemble(knowledge(spec, router=router, attention=attention))  # type: ignore[arg-type]
        data = {"router": router, "linear": True if seed % 4 == 0 else None}
        yield Subject(f"random world {seed}, {router}, {attention}", spec, weights, data)
    spec = xor_world()
    yield Subject("XOR world", spec, assemble(knowledge(spec)), {"router": "hidden", "linear": False})
    spec = large_world()
    yield Subject("200 tasks, 20,000 facts", spec, assemble(knowledge(spec)), {"router": "hidden", "linear": None})


def check(subject: Subject) -> Evidence:
    """Answers, routing, isolation, sizes, and what a new task changes."""
    start = time.perf_counter()
    spec, weights = subject.spec, subject.weights
    (block,) = weights.architecture.blocks
    promised = sizes(spec)
    short = all(len(key) == 1 for task in spec.tasks for key, _ in task.facts)
    counted = [len(task.templates) + len(task.facts) for task in spec.tasks]
    declared: dict[str, Any] = {
        "wrong answers": 0,
        "wrong routes": 0,
        "least lead of the right expert is 1 within 1 %": True,
        "heads": promised["heads"],
        "units of experts": sum(counted) if short else sum(promised["experts"]),  # type: ignore[arg-type]
        "units of the router": promised["router"] if subject.data["router"] == "hidden" else 0,
        "broken templates that get an answer": 0,
    }
    wrong, routes, lead, witness = _asked(spec, weights)
    measured: dict[str, Any] = {
        "wrong answers": wrong,
        "wrong routes": routes,
        "least lead of the right expert is 1 within 1 %": lead >= 0.99,
        "least lead of the right expert": lead,
        "heads": Ledger.of(weights).heads,
        "units of experts": sum(expert.units for expert in block.experts),
        "units of the router": block.router,
        "broken templates that get an answer": _answered_when_broken(spec, weights),
    }
    if len(spec.queries) <= FEW:
        declared |= {"isolation matrix is the identity": True, "expert arrays that a new task changes": 0}
        measured["isolation matrix is the identity"] = _isolated(spec, weights)
        measured["expert arrays that a new task changes"] = _changed(spec, weights, subject.data["router"])
    if subject.data["linear"] is not None:
        declared["linear router exists"] = subject.data["linear"]
        measured["linear router exists"] = linear_route(spec) is not None
    evidence = Evidence(
        verdict="fails" if wrong or routes else "holds",
        method="exhaustive",
        domain=f"all {len(spec.queries)} queries",
        cases=len(spec.queries),
        witness=witness,
        seconds=time.perf_counter() - start,
    )
    return with_sizes(evidence, declared, measured)


def sabotage(subject: Subject) -> Subject:
    """The first expert forgets its last fact."""
    (block,) = subject.weights.architecture.blocks
    return zeroed(subject, "blocks.0.moe.experts.0.W_out", block.experts[0].units - 1)


def _asked(spec: Knowledge, weights: Weights) -> tuple[int, int, float, dict[str, Any] | None]:
    """Wrong answers and wrong routes in the first batch that has some, the least lead, and one wrong answer."""
    net = weights.architecture
    symbols, least = np.array(net.output.symbols), np.inf
    right = _right(spec, weights)
    for queries, logits, scores in watched(weights, right):
        tasks, values = (np.array(column) for column in zip(*map(right.__getitem__, queries), strict=True))
        least = min(least, float(leads(scores, tasks).min()))
        found = symbols[logits.argmax(axis=-1)]
        wrong = np.flatnonzero(found != values).tolist()
        lost = int((scores.argmax(axis=1) != tasks).sum())
        if wrong or lost:
            place = (wrong or [0])[0]
            words = [net.inputs[i] for i in queries[place]]
            told = {"query": words, "expected": str(values[place]), "found": str(found[place]), "wrong routes": lost}
            return len(wrong), lost, least, told
    return 0, 0, least, None


def _right(spec: Knowledge, weights: Weights) -> dict[tuple[int, ...], tuple[int, str]]:
    """The task and the value of every query."""
    return {
        tuple(encode(weights.architecture, words)): (task, spec.tasks[task].facts[fact][1])
        for words, (task, _, fact) in spec.queries.items()
    }


def _isolated(spec: Knowledge, weights: Weights) -> bool:
    """Whether an expert that is made to work answers all queries of its own task, and none to all others."""
    net, right = weights.architecture, _right(spec, weights)
    tokens, lengths = batch_of(net, [*right])
    tasks, values = (np.array(column) for column in zip(*right.values(), strict=True))
    for expert in range(len(spec.tasks)):
        last = forced(weights, tokens, expert)[np.arange(len(right)), lengths - 1]
        if (np.array(net.output.symbols)[last.argmax(axis=-1)] != np.where(tasks == expert, values, NONE)).any():
            return False
    return True


def _changed(spec: Knowledge, weights: Weights, router: str) -> int:
    """How many arrays of the experts differ after one more task was added."""
    new = Task("new task", (("something", "new", "about", "#"),), (*spec.tasks[0].facts, (("novelty",), "a new value")))
    attention = weights.about["attention"]
    grown = assemble(knowledge(Knowledge((*spec.tasks, new)), router=router, attention=attention))  # type: ignore[arg-type]
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


CLAIM = Claim(row="R5", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
