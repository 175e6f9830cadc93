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
Checked: The exact optimum against $c$; the gaps of the trained $W_V$ and of the Gram matrix; the ratio of attention to
words of the same and of other topics with $W_V$ at its optimum, and in joint training when $\|W_V\|$ has grown fourfold
and at the end. Quick scale has 6 topics of 5 words and 8 seeds; large scale has 10 topics of 10 words and 16 seeds, and
adds a Dirichlet mixture; documents have 100 words. Real documents are Python's help texts with topics fitted by
scikit-learn; there the computed optimum replaces $c$, and $W_V$ must rank pairs of words by topic.
Not checked: Attention on real documents is reported: it prefers the same word. Joint training with Adam or squared
loss; the authors' Wikipedia experiments; longer documents (at 100 words the gap differs from $c$ by up to 5 %).
Source: Li, Li and Risteski 2023, arXiv 2303.04245 [S]; the optimum at finite length is ours.
Saboteur: The same networks, judged with words assigned to topics at random, so that no gap is left.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials import topics
from vitrify.claims.trials.trial import Criterion, Evidence, Quantity, evidence, trained
from vitrify.encoding import JsonObject
from vitrify.learn.figures import dots, heat, panel, sheet
from vitrify.sandboxes.corpus import Corpus
from vitrify.sandboxes.kit.masking import Masked
from vitrify.sandboxes.lda import LDA
from vitrify.sandboxes.topics import Topics

MAX_EXACT = 1e-5  # distance of the exact optimum from the closed form, whose limit is taken by a small ridge
MAX_ERROR = 0.10  # relative: documents of 100 words account for 5 %, the noise of SGD for the rest
MIN_RATIO, MAX_EARLY = 2.0, 1.1  # attention to words of the same topic over other topics: at the end; while W_V grows
GROWTH = 4.0  # of |W_V|, over its initial norm
MIN_RANKED = 0.75  # probability that a pair of one topic has the larger value, on real documents
KINDS = {"same word": "C2", "same topic": "C0", "other topics": "C3"}  # of pairs, with their colors


def subjects() -> Subjects:
    trainings = (250, 16, 6.0), (300, 16, 3.0), (300, 16, 150.0), (700, 16, 10.0)
    parts = dict(zip(topics.HEADS, trainings, strict=True))
    yield _subject("topics", Topics(topics=6, words=5, tau=2, length=100), parts)
    yield _subject("corpus", Corpus(topics=8, words=4, length=16), {"values": (1000, 32, 3.0), "all": (600, 32, 5.0)})


def large() -> Subjects:
    trainings = (2000, 64, 15.0), (3000, 64, 8.0), (2000, 64, 200.0), (2000, 64, 20.0)
    parts = dict(zip(topics.HEADS, trainings, strict=True))
    yield _subject("topics", Topics(topics=10, words=10, tau=4, length=100), parts, seeds=16)
    mixed = LDA(topics=10, words=100, beta=0.0, alpha=0.1, grid=5, length=100)
    yield _subject("lda", mixed, {name: parts[name] for name in ("values", "all")}, seeds=16)
    real = {"values": (8000, 64, 3.0), "all": (2000, 64, 5.0)}
    yield _subject("corpus", Corpus(topics=8, words=4, length=16), real, seeds=16)


def _subject(name: str, sandbox: topics.Documents, parts: dict[str, tuple[int, int, float]], seeds: int = 8) -> Subject:
    """Return trials on some documents, with steps, batch and learning rate for each part of the head."""
    data = {"topics": sandbox.topics, "words": sandbox.words, "length": sandbox.length, "shuffled": False}
    trials = {part: topics.part_trial(sandbox, part, *training, seeds) for part, training in parts.items()}
    return Subject(name, data=data, trials=trials)


def sabotage(subject: Subject) -> Subject:
    return subject.with_data(shuffled=True)


def check(subject: Subject) -> Evidence:
    nets, real, shuffled = trained(subject), subject.name == "corpus", subject.data["shuffled"]
    sandbox: Masked = nets["values"].trial.sandbox
    labels = topics.labels_of(len(sandbox.answers), subject.data["topics"], shuffled)
    words, judged, seeds = len(labels) // subject.data["topics"], Criterion.judged, len(nets["values"].trial.seeds)
    exact = sandbox.best_linear(sandbox.length)[:, 1:]
    goal = topics.gap(exact, labels, own=False) if real else topics.closed_form(sandbox, words)
    names = [name if real else str(at) for at, name in enumerate(sandbox.answers[::words])]
    figure: JsonObject = {"goal": goal, "exact": topics.gap(exact, labels, own=not real), "words": words}
    figure |= {"near": MAX_ERROR, "names": names, "length": sandbox.length, "members": seeds}
    criteria, quantities = [], []
    if not real:
        limit = topics.distances_from_optimum(shuffled) if subject.name == "topics" else []
        limit.append(abs(topics.gap(sandbox.best_linear(ridge=topics.RIDGE)[:, 1:], labels) - goal))
        criteria.append(judged("exact optimum: distance from c", limit, at_most=MAX_EXACT))
    for part, kind in (("values", "value matrix"), ("embedding", "Gram matrix of embeddings")):
        if part not in nets:
            continue
        matrices, name = topics.matrices(nets[part], part), f"{kind}: gap / {'exact optimum' if real else 'c'}"
        figure[part] = topics.compared(matrices, labels, exact, goal, own=not real)
        criteria.append(judged(name, figure[part]["gaps"], at_least=1 - MAX_ERROR, at_most=1 + MAX_ERROR))
        if real:
            rates = [topics.ranked(matrix, labels) for matrix in matrices]
            criteria.append(judged(f"{kind}: pairs of one topic ranked higher", rates, at_least=MIN_RANKED))
    for part, kind in (("attention", "W_V at its optimum"), ("all", "trained together")):
        if part not in nets:
            continue
        figure[part] = own = topics.attended(nets[part], labels)
        ratio, norm = own["attention"][1] / own["attention"][2], own["norms"][0]
        if real:
            means = own["attention"][..., -1].mean(axis=1)
            quantities.append(Quantity("attention to the same word, words of the topic, other words", means))
            continue
        if part == "all":
            at = (norm >= GROWTH * norm[:, :1]).argmax(axis=1)
            own["grown"], early = np.array(own["steps"])[at], ratio[np.arange(len(ratio)), at]
            criteria.append(judged(f"attention ratio when |W_V| is {GROWTH:g}-fold", early, at_most=MAX_EARLY))
        criteria.append(judged(f"attention ratio at the end, {kind}", ratio[:, -1], at_least=MIN_RATIO))
    return evidence(subject, criteria, figure, quantities)


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


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L10", standing="experiment", learned=True, budget_seconds=180)
