r"""A head learns topics first in its value matrix and then in its attention, or in its embeddings alone.

Statement: Documents contain some of $T$ topics with $v$ words each. Positions are selected with probability $p_m$; a
selected word is kept with probability $p_c$, replaced at random with $p_r$, and masked otherwise. For the head $W_V
Z\,\mathrm{softmax}((W_K Z)^\top W_Q Z)$ with uniform attention and squared loss, the optimal $W_V$ is larger for two
words of one topic than for two of different topics by $c = 1/(v(1 - (1-p_c)p_m))$; so is the Gram matrix of trained
embeddings. With $W_V$ at this optimum, attention comes to prefer words of the same topic. If all are trained together
from small weights by SGD, $W_V$ grows first and attention follows.
Why: In long documents the mean token is linear in the word distribution; inverting that map multiplies the share of a
topic by $1/(1 - (1-p_c)p_m)$, in $v$ equal parts. Scores are products of two small matrices and get no gradient before
$W_V$ separates topics.
Not checked: On real documents (Python's help texts, with topics fitted by scikit-learn) the computed optimum replaces
$c$. Attention on real documents is reported: it prefers the same word. Joint training with Adam or squared loss; the
authors' Wikipedia experiments; longer documents (at 100 words the gap differs from $c$ by up to 5 %).
Source: Li, Li and Risteski 2023, arXiv 2303.04245 [S]; the optimum at finite length is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import topic_nulls, topics
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, evidence
from vitrify.encoding import JsonObject
from vitrify.learn.figures import dots, heat, panel, sheet
from vitrify.sandboxes.corpus import Corpus
from vitrify.sandboxes.lda import LDA
from vitrify.sandboxes.topics import Topics

MAX_EXACT = 1e-5  # distance of the exact optimum from the closed form, whose limit is taken by a small ridge
MAX_ERROR = 0.10  # relative: documents of 100 words account for 5 %, the noise of SGD for the rest
MIN_RATIO, MAX_EARLY = 2.0, 1.1  # attention to words of the same topic over other topics: at the end; while W_V grows
GROWTH, MIN_LATER = 4.0, 1.2  # of |W_V|, over its initial norm; step at which attention is half way, over that of |W_V|
MIN_RANKED = 0.75  # probability that a pair of one topic has the larger value, on real documents
KINDS = {"same word": "C2", "same topic": "C0", "other topics": "C3"}  # of pairs, with their colors
# Steps, batch and learning rate of values, embedding, attention, and all together.
LARGE = dict(zip(topics.HEADS, ((2000, 64, 15.0), (3000, 64, 8.0), (2000, 64, 200.0), (2000, 64, 20.0)), strict=True))
QUICK = dict(zip(topics.HEADS, ((250, 16, 6.0), (300, 16, 3.0), (300, 16, 150.0), (700, 16, 10.0)), strict=True))
GAP_RANGE = f"gap / c within {1 - MAX_ERROR:g} to {1 + MAX_ERROR:g} in each seed"
UNMASKED = "topics count as if no word were masked: the gap is 1/v"
PLAN = Plan(
    version=1,
    question="What is learned of topics by values, by embeddings and by attention, and in which order?",
    statements={
        "optimum": Statement(
            "in long documents the optimal values are larger within a topic by c = 1/(v(1 - (1-p_c)p_m))",
            f"distance of the exact optimum of each model from c ≤ {MAX_EXACT:g}",
            UNMASKED,
        ),
        "values": Statement(
            "the trained value matrix has this gap",
            f"{GAP_RANGE}; in real documents with the computed optimum for c, and pairs of one topic rank above others "
            f"at a rate ≥ {MIN_RANKED}",
            UNMASKED,
        ),
        "embeddings": Statement("the Gram matrix of trained embeddings has the same gap", GAP_RANGE, UNMASKED),
        "attention": Statement(
            "with values at their optimum, attention comes to prefer words of the same topic",
            f"attention to other words of the topic over that to other topics ≥ {MIN_RATIO:g} at the end, in each seed",
            "attention prefers the same word, and treats all other words alike",
        ),
        "order": Statement(
            "trained together, values grow first and attention follows",
            f"this ratio ≤ {MAX_EARLY} when |W_V| is {GROWTH:g}-fold, ≥ {MIN_RATIO:g} at the end, and its logarithm "
            f"rises half way ≥ {MIN_LATER} times as late as |W_V|, in each seed",
            "the logarithm of the ratio grows in proportion to |W_V|",
        ),
    },
    units="seed of weights and documents",
    judged=range(100, 116),
    explored=range(32),
    stopping="fixed number of steps",
    scale={
        "topics": Axis(10, 10),
        "words of a topic": Axis(10, 10),
        "words of a document": Axis("100", "100 to 150"),
        "steps": Axis(min(steps for steps, *_ in LARGE.values()), 5000),
        "batch": Axis(64, 40),
        "optimizer": Axis("SGD", "Adam"),
        "real documents": Axis("Python's help texts", "Wikipedia"),
    },
    chosen="Rates; SGD, as with Adam values and attention grow together; half ways, as |W_V| grows up to 70-fold.",
)


def subjects() -> Subjects:
    yield _subject("topics", Topics(topics=6, words=5, tau=2, length=100), QUICK, PLAN.explored[:8])
    real = {"values": (1000, 32, 3.0), "all": (600, 32, 5.0)}
    yield _subject("corpus", Corpus(topics=8, words=4, length=16), real, PLAN.explored[:8])


def large() -> Subjects:
    yield _subject("topics", Topics(topics=10, words=10, tau=4, length=100), LARGE, PLAN.judged)
    mixed = LDA(topics=10, words=100, beta=0.0, alpha=0.1, grid=5, length=100)
    yield _subject("lda", mixed, {name: LARGE[name] for name in ("values", "all")}, PLAN.judged)
    real = {"values": (8000, 64, 3.0), "all": (2000, 64, 5.0)}
    yield _subject("corpus", Corpus(topics=8, words=4, length=16), real, PLAN.judged)


def _subject(name: str, sandbox: topics.Documents, parts: topics.Parts, seeds: Sequence[int]) -> Subject:
    data = {"topics": sandbox.topics, "words": sandbox.words, "length": sandbox.length}
    trials = {part: topics.part_trial(sandbox, part, *training, seeds) for part, training in parts.items()}
    return Subject(name, data=data, trials=trials)


def judge(subject: Subject, measured: Measured) -> Evidence:
    real, trials, quantities = subject.name == "corpus", subject.trials, []
    sandbox, exact = trials["values"].sandbox, float(measured["optimum/exact"])
    words = len(sandbox.answers) // subject.data["topics"]
    goal = exact if real else topics.closed_form(sandbox, words)
    names = [name if real else str(at) for at, name in enumerate(sandbox.answers[::words])]
    figure: JsonObject = {"goal": goal, "exact": exact, "words": words, "near": MAX_ERROR, "names": names}
    figure |= {"length": sandbox.length, "members": len(trials["values"].seeds)}
    for part, trial in trials.items():
        if part in ("values", "embedding"):
            drawn = {name: measured[f"{part}/{name}"] for name in ("halves", "blocks")}
            figure[part] = {"gaps": measured[f"{part}/gaps"] / goal, **drawn}
        else:
            kinds, norms = (np.moveaxis(measured[f"{part}/{name}"], -1, 0) for name in ("attention", "norms"))
            figure[part] = {"steps": trial.recipe.eval_steps(), "attention": kinds, "norms": norms}
    if real:
        name, kinds = "attention to the same word, words of the topic, other words", figure["all"]["attention"]
        quantities = [Quantity(name, kinds[..., -1].mean(axis=1))]
    return evidence(subject, list(_criteria(measured, figure, real)), figure, quantities)


def _criteria(measured: Measured, figure: JsonObject, real: bool) -> Iterator[Criterion]:
    """Yield the criteria of the statements about the parts that were trained."""
    judged, predicted = Criterion.judged, "exact optimum" if real else "c"
    near = partial(judged, at_least=1 - MAX_ERROR, at_most=1 + MAX_ERROR)
    yield near(f"value matrix: gap / {predicted}", figure["values"]["gaps"], statement="values")
    if real:
        ranked = "value matrix: pairs of one topic ranked higher"
        yield judged(ranked, measured["values/ranked"], at_least=MIN_RANKED, statement="values")
        return
    far = np.abs(measured["optimum/gaps"] - measured["optimum/c"])
    yield judged("exact optimum: distance from c", far, at_most=MAX_EXACT, statement="optimum")
    if "embedding" in figure:
        yield near("Gram matrix of embeddings: gap / c", figure["embedding"]["gaps"], statement="embeddings")
    if "attention" in figure:
        ratio = np.divide(*figure["attention"]["attention"][1:, :, -1])
        yield judged("attention ratio at the end", ratio, at_least=MIN_RATIO, statement="attention")
    paced, order = topics.paced(figure["all"], GROWTH), partial(judged, statement="order")
    figure["all"]["grown"] = paced["step"]
    yield order(f"|W_V| has grown {GROWTH:g}-fold", paced["grown"], at_least=1.0, premise=True)
    yield order(f"attention ratio when |W_V| is {GROWTH:g}-fold", paced["early"], at_most=MAX_EARLY)
    yield order("attention ratio at the end, trained together", paced["end"], at_least=MIN_RATIO)
    yield order("step at which attention is half way, over that of |W_V|", paced["later"], at_least=MIN_LATER)


def draw(figures: Figures) -> Figure:
    model, real, title = figures["topics"], figures["corpus"], "Topics: values first, then attention"
    figure, ((values, gaps, learns), (norms, together, corpus)) = sheet(2, 3, title, 4.6, 3.7)
    for own, matrix in ((values, model["values"]["halves"]), (corpus, real["values"]["blocks"])):
        most = float(np.abs(matrix).max())
        heat(own, matrix, cmap="RdBu_r", vmin=-most, vmax=most)
    values.set(xlabel=f"word, {model['words']} of a topic", ylabel="answer", title="above exact, below trained")
    corpus.set_xticks(range(len(real["names"])), real["names"], rotation=90, fontsize=8)
    corpus.set_yticks(range(len(real["names"])), real["names"], fontsize=8)
    corpus.set(title="Python's help texts: values between topics", xlabel="topic, by its first word; different words")
    both = [(name, part) for name in figures for part in ("values", "embedding") if part in figures[name]]
    for at, (name, part) in enumerate(both):
        dots(gaps, at, figures[name][part]["gaps"], f"{part}, {name}", f"C{at}", spread=0.25, marker=".")
        gaps.plot([at - 0.3, at + 0.3], [figures[name]["exact"] / figures[name]["goal"]] * 2, "k-", linewidth=1)
    gaps.axhspan(1 - MAX_ERROR, 1 + MAX_ERROR, color="0.9")
    gaps.set(xticks=[], xlabel="dots: seeds; bars: exact at this length", ylim=(1 - 2 * MAX_ERROR, 1 + 2 * MAX_ERROR))
    panel(gaps, lines={"closed form c (corpus: exact optimum)": 1.0}, at=0.01, ylabel="gap of topics / predicted")
    draw = partial(panel, lines={"uniform": 1.0}, at=0.01, steps=True, ylabel="attention × number of words")
    titles = {"attention": "W_V at its optimum: attention learns", "all": "trained together: attention"}
    for own, (name, title) in zip((learns, together), titles.items(), strict=True):
        groups = dict(zip(KINDS, model[name]["attention"], strict=True))
        draw(own, model[name]["steps"], groups, colors=tuple(KINDS.values()), title=title)
    sizes = zip(("W_V", "W_Q", "W_K"), map(np.array, model["all"]["norms"]), strict=True)
    groups = {name: each / each[:, :1] for name, each in sizes}
    panel(norms, model["all"]["steps"], groups, {"W_V has grown fourfold": GROWTH}, at=0.01, steps=True, yscale="log")
    norms.set(ylabel="norm / initial norm", title="trained together: norms")
    for own in (norms, together):
        own.axvline(np.mean(model["all"]["grown"]), color="black", linestyle=":", linewidth=1)
    return figure


NULLS = dict.fromkeys(("optimum", "values", "embeddings"), topic_nulls.unmasked) | {
    "attention": topic_nulls.copying,
    "order": topic_nulls.together,
}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, topics.measure, id="L10", standing="experiment")
