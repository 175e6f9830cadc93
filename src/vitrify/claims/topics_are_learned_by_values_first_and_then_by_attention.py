r"""A head learns topics by its value matrix first and by attention then, or by its embeddings alone.

Statement: documents are about some of $T$ topics with $v$ words each; places are chosen with probability $p_m$, kept
with $p_c$, replaced with $p_r$ and masked otherwise. A head $W_V Z\,\mathrm{softmax}((W_K Z)^\top W_Q Z)$ that looks
everywhere alike is best, in squares, where $W_V$ has for two words of one topic $c = 1/(v(1 - (1-p_c)p_m))$ more than
for two of different ones; so is the Gram matrix of trained embeddings. With $W_V$ there, attention comes to prefer
words of the same topic. Trained together from small weights by SGD, $W_V$ grows first, and attention follows.
Why: over long documents the mean token is linear in the law of the document, and inverting that map multiplies the
share of a topic by $1/(1 - (1-p_c)p_m)$, in $v$ equal parts. Scores are products of $W_K$ and $W_Q$, both small, and
get no slope before $W_V$ tells topics apart.
Checked: the exact optimum over all sets of topics against $c$, for random numbers; then, over seeds, the gap of $W_V$
and of the Gram matrix, the ratio of attention to words of the same and of other topics with $W_V$ at its optimum, and
that ratio when $\|W_V\|$ has grown fourfold and at the end. On documents of a Dirichlet mixture too (paper scale); and
on real ones, Python's help texts with topics fitted by scikit-learn, where the optimum is computed instead of $c$,
and $W_V$ must rank pairs of different words by topic. There attention is reported only: it prefers the same word.
Source: Li, Li, Risteski 2023, arXiv 2303.04245 [S]; the completion of the optimum and its finite length are ours.
Saboteur: the same networks, with words dealt out to topics at random: no gap is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.models.one_hot_head import EMBED, SCORES, VALUES, OneHotHeadFamily
from vitrify.learn.probes import between_symbols
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import Run, train
from vitrify.sandboxes._masking import Masked
from vitrify.sandboxes.corpus import Corpus
from vitrify.sandboxes.lda import LDA
from vitrify.sandboxes.topics import Topics

EXACT = 1e-5  # how far the exact optimum may be from the closed form, whose limit is taken by a small ridge
RIDGE = 1e-9
NEAR = 0.10  # of the gap: documents of 100 words bend it by up to 5 %, and the rest is noise of SGD
PREFERS = 2.0  # attention to words of the same topic, over that to others
STILL = 1.1  # the same, while the value matrix grows
GROWN = 4.0  # times its first norm
RANKED = 0.75  # how often a pair of one topic must have the larger value, on real documents
DRAWS = 6  # random models whose optimum is compared with the closed form
SHOWN = 30  # words of a matrix that are shown
KINDS = (("same word", "C2"), ("same topic", "C0"), ("other topics", "C3"))  # of pairs, with their colours


@dataclass(frozen=True)
class Setting:
    """What is trained: the documents, seeds, and a recipe for each part of the head."""

    sandbox: Masked
    parts: tuple[tuple[str, Recipe], ...]
    members: int = 8
    shuffled: bool = False

    @property
    def topics(self) -> int:
        """How many topics there are."""
        return int(getattr(self.sandbox, "topics"))  # noqa: B009

    @property
    def labels(self) -> Array:
        """The topic of every word."""
        return _labels(len(self.sandbox.answers), self.topics, self.shuffled)


def _labels(words: int, topics: int, shuffled: bool) -> Array:
    labels = np.repeat(np.arange(topics), words // topics)
    return np.random.default_rng(0).permutation(labels) if shuffled else labels


def _recipe(**choices: Any) -> Recipe:
    return Recipe(optimiser="sgd", beta1=0.0, clip=None, warmup=0, test_rows=64, **choices)


def subjects() -> Iterator[Subject]:
    parts = (
        ("values", _recipe(loss="squared", steps=250, batch=16, lr=6.0, schedule="linear", marks=1)),
        ("embedding", _recipe(loss="squared", steps=300, batch=16, lr=3.0, schedule="linear", marks=1)),
        ("attention", _recipe(loss="squared", steps=300, batch=16, lr=150.0, schedule="linear")),
        ("all", _recipe(steps=700, batch=16, lr=10.0, schedule="linear")),
    )
    yield Subject("topics", data={"setting": Setting(Topics(topics=6, words=5, tau=2, length=100), parts)})
    real = (
        ("values", _recipe(loss="squared", steps=1000, batch=32, lr=3.0, schedule="linear", marks=1)),
        ("all", _recipe(steps=600, batch=32, lr=5.0)),
    )
    yield Subject("corpus", data={"setting": Setting(Corpus(topics=8, words=4, length=16), real)})


def paper() -> Iterator[Subject]:
    parts = (
        ("values", _recipe(loss="squared", steps=2000, batch=64, lr=15.0, schedule="linear", marks=1)),
        ("embedding", _recipe(loss="squared", steps=3000, batch=64, lr=8.0, schedule="linear", marks=1)),
        ("attention", _recipe(loss="squared", steps=2000, batch=64, lr=200.0, schedule="linear")),
        ("all", _recipe(steps=2000, batch=64, lr=20.0, schedule="linear")),
    )
    yield Subject("topics", data={"setting": Setting(Topics(topics=10, words=10, tau=4, length=100), parts, 16)})
    mixed = LDA(topics=10, words=100, beta=0.0, alpha=0.1, grid=5, length=100)
    yield Subject("lda", data={"setting": Setting(mixed, (parts[0], parts[3]), 16)})
    real = (
        ("values", _recipe(loss="squared", steps=8000, batch=64, lr=3.0, schedule="linear", marks=1)),
        ("all", _recipe(steps=2000, batch=64, lr=5.0)),
    )
    yield Subject("corpus", data={"setting": Setting(Corpus(topics=8, words=4, length=16), real, 16)})


def sabotage(subject: Subject) -> Subject:
    return Subject(subject.name, data={"setting": replace(subject.data["setting"], shuffled=True)})


def closed_form(sandbox: Masked, words: int) -> float:
    r"""$c = 1/(v(1 - (1-p_c)p_m))$ for $v$ words of each topic."""
    return 1 / (words * (1 - (1 - sandbox.kept) * sandbox.masked))


def pairs(labels: Array, *, own: bool) -> tuple[Array, Array]:
    """Which pairs of words have one topic, and which have two; a word with `own` self is a pair of one topic."""
    same = labels[:, None] == labels
    return same & (own | ~np.eye(len(labels), dtype=bool)), ~same


def gap(matrix: Array, labels: Array, *, own: bool = True) -> float:
    """How much larger the mean of a matrix [word, word] is over pairs of one topic."""
    same, other = pairs(labels, own=own)
    return float(matrix[same].mean() - matrix[other].mean())


def ranked(matrix: Array, labels: Array) -> float:
    """How often a pair of different words of one topic has a larger value than one of two topics."""
    same, other = (np.sort(matrix[mask]) for mask in pairs(labels, own=False))
    return float(np.searchsorted(other, same).mean() / len(other))


def drawn(shuffled: bool) -> list[float]:
    """How far the exact optimum of random models, over all sets of topics, is from the closed form."""
    rng, found = np.random.default_rng(7), []
    for _ in range(DRAWS):
        topics, words = int(rng.integers(3, 9)), int(rng.integers(2, 9))
        tau = int(rng.integers(1, topics))
        masked, kept, replaced = (float(rng.uniform(low, high)) for low, high in ((0.1, 0.5), (0.0, 0.4), (0.0, 0.4)))
        model = Topics(topics=topics, words=words, tau=tau, masked=masked, kept=kept, replaced=replaced)
        labels = _labels(topics * words, topics, shuffled)
        best = model.best_linear(ridge=RIDGE)[:, 1:]
        found.append(abs(gap(best, labels) - closed_form(model, words)))
    return found


@lru_cache(maxsize=8)
def _trained(sandbox: Masked, part: Any, recipe: Recipe, members: int) -> list[Run]:
    """The members of one part; what a word's topic is called plays no role, so a saboteur need not train again."""
    scale = 0.1 if part == "embedding" else 0.02
    family = OneHotHeadFamily(learns=part, scale=scale)
    best = np.pad(sandbox.best_linear().T, ((1, 0), (0, 0))).astype(
        np.float32
    )  # with a line for BOS, which never comes

    def at_optimum(net: Any, key: Array, values: Mapping[str, Array]) -> dict[str, Array]:
        del values
        return {**family.first(net, key), VALUES: jnp.asarray(best)[None]}

    def norms(net: Any, arrays: Any, row: Any, seen: Any) -> Array:
        del net, row, seen
        return jnp.stack([jnp.linalg.norm(arrays[name]) for name in (VALUES, *SCORES)])

    probes: dict[str, Any] = {"pairs": between_symbols, "norms": norms} if part in ("attention", "all") else {}
    first = at_optimum if part == "attention" else None
    return train(family, sandbox, members=members, recipe=recipe, probes=probes, first=first)


def matrix_of(run: Run, part: str) -> Array:
    """What stands for the value matrix of a trained head [answer, word], as far as it is about words."""
    arrays = run.weights.arrays
    if part == "embedding":
        return (arrays[EMBED] @ arrays[EMBED].T)[2:, 2:]  # without BOS and the mask
    return arrays[VALUES][0].T[:, 2:]


def looks(run: Run, labels: Array) -> Array:
    """Attention to the same word, other words of the topic and words of other topics, at every mark: [3, mark]."""
    same, other = pairs(labels, own=False)
    masks = np.stack([np.eye(len(labels), dtype=bool), same, other])
    found = [np.array(point["pairs"])[:, 0, 1:, 1:] for point in run.curve]
    return np.stack([[part[0][mask].sum() / part[1][mask].sum() for part in found] for mask in masks])


def check(subject: Subject) -> Evidence:
    setting: Setting = subject.data["setting"]
    sandbox, labels, real = setting.sandbox, setting.labels, subject.name == "corpus"
    words = len(labels) // setting.topics
    found = {part: _trained(sandbox, part, recipe, setting.members) for part, recipe in setting.parts}
    exact = sandbox.best_linear(sandbox.length)[:, 1:]
    goal = gap(exact, labels, own=False) if real else closed_form(sandbox, words)
    shown: dict[str, Any] = {"goal": goal, "exact": gap(exact, labels, own=not real), "words": words, "near": NEAR}
    shown |= {"names": _names(sandbox, words), "length": sandbox.length, "members": setting.members}
    asked, notes = [], []
    if not real:
        best = sandbox.best_linear(ridge=RIDGE)[:, 1:]
        limit = [*(drawn(setting.shuffled) if subject.name == "topics" else []), abs(gap(best, labels) - goal)]
        asked.append(Asked("exact optimum: distance from c", limit, most=EXACT))
    for part, kind in (("values", "value matrix"), ("embedding", "Gram matrix of embeddings")):
        if part in found:
            matrices = [matrix_of(run, part) for run in found[part]]
            gaps = [gap(matrix, labels, own=not real) / goal for matrix in matrices]
            what = "exact optimum" if real else "c"
            asked.append(Asked(f"{kind}: gap / {what}", gaps, least=1 - NEAR, most=1 + NEAR))
            if real:
                rates = [ranked(matrix, labels) for matrix in matrices]
                asked.append(Asked(f"{kind}: pairs of one topic ranked higher", rates, least=RANKED))
            mean = np.mean(matrices, axis=0)
            halves = np.where(np.tri(len(mean), k=-1, dtype=bool), mean, exact)[:SHOWN, :SHOWN]
            shown[part] = {"gaps": gaps, "halves": halves, "blocks": _blocks(mean, setting.topics)}
    for part in ("attention", "all"):
        if part in found:
            curves = np.stack([looks(run, labels) for run in found[part]])  # [member, kind, mark]
            sizes = np.array([[point["norms"] for point in run.curve] for run in found[part]])  # [member, mark, matrix]
            steps = [point["step"] for point in found[part][0].curve]
            shown[part] = {"steps": steps, "looks": np.moveaxis(curves, 1, 0), "norms": np.moveaxis(sizes, 2, 0)}
            ratio = curves[:, 1] / curves[:, 2]
            if real:
                notes.append("attention to the same word, words of the topic, other words: " + _means(curves))
                continue
            if part == "all":
                at = (sizes[:, :, 0] >= GROWN * sizes[:, :1, 0]).argmax(axis=1)
                shown[part]["grown"] = np.array(steps)[at]
                early = ratio[np.arange(len(ratio)), at].tolist()
                asked.append(Asked(f"attention ratio when |W_V| is {GROWN:g}-fold", early, most=STILL))
            kind = "W_V at its optimum" if part == "attention" else "trained together"
            asked.append(Asked(f"attention ratio in the end, {kind}", ratio[:, -1].tolist(), least=PREFERS))
    where = f"{type(sandbox).__name__} {sandbox.identity()}"
    return decided(asked, domain=f"{setting.members} seeds of each part on {where}", seed=0, shown=shown, notes=notes)


def _means(curves: Array) -> str:
    return ", ".join(f"{value:.3g}" for value in curves[:, :, -1].mean(axis=0))


def _names(sandbox: Masked, words: int) -> list[str]:
    return [name if isinstance(sandbox, Corpus) else str(at) for at, name in enumerate(sandbox.answers[::words])]


def _blocks(matrix: Array, topics: int) -> Array:
    """The mean of a matrix over the pairs of different words of every two topics, in the order of the words."""
    words = len(matrix) // topics
    off = np.where(np.eye(len(matrix), dtype=bool), np.nan, matrix)
    return np.nanmean(off.reshape(topics, words, topics, words), axis=(1, 3))


def draw(shown: Mapping[str, Any]) -> Any:
    from vitrify.learn.figures import band, by_step, level, sheet

    model = shown["topics"]
    figure, planes = sheet(2, 3, "Topics: values first, then attention", width=4.6, height=3.7)
    _heat(figure, planes[0, 0], model["values"]["halves"], "value matrix: above exact, below trained (mean)")
    planes[0, 0].set(xlabel=f"token (word of a topic: {model['words']} each)", ylabel="answer (word)")
    plane = planes[0, 1]
    for at, (name, part) in enumerate(
        (name, part) for name in shown for part in ("values", "embedding") if part in shown[name]
    ):
        gaps = shown[name][part]["gaps"]
        plane.plot(np.linspace(at - 0.25, at + 0.25, len(gaps)), gaps, ".", label=f"{part}, {name}")
        plane.plot([at - 0.3, at + 0.3], [shown[name]["exact"] / shown[name]["goal"]] * 2, "k-", linewidth=1)
    plane.axhspan(1 - model["near"], 1 + model["near"], color="0.9")
    level(plane, 1.0, "closed form c (corpus: exact optimum)", at=0.01)
    plane.set(
        xticks=[],
        xlabel="one dot per seed; bars: exact at this length",
        ylabel="gap of same and other topics / predicted",
    )
    plane.set_ylim(1 - 2 * model["near"], 1 + 2 * model["near"])
    plane.legend(fontsize=8)
    for plane, part, title in (
        (planes[0, 2], "attention", "W_V at its optimum: attention learns"),
        (planes[1, 1], "all", "trained together: attention"),
    ):
        for values, (label, colour) in zip(model[part]["looks"], KINDS, strict=True):
            band(plane, model[part]["steps"], values, label, colour)
        level(plane, 1.0, "uniform", at=0.01)
        by_step(plane)
        plane.set(ylabel="attention × number of words", title=title)
        plane.legend(fontsize=8)
    plane = planes[1, 0]
    for kind, name in enumerate(("W_V", "W_Q", "W_K")):
        size = np.array(model["all"]["norms"][kind])
        band(plane, model["all"]["steps"], size / size[:, :1], name, f"C{kind}")
    for plane in planes[1, :2]:
        plane.axvline(np.mean(model["all"]["grown"]), color="black", linestyle=":", linewidth=1)
    level(planes[1, 0], GROWN, "W_V has grown fourfold", at=0.01)
    by_step(planes[1, 0])
    planes[1, 0].set(yscale="log", ylabel="norm / first norm", title="trained together: norms")
    planes[1, 0].legend(fontsize=8)
    real = shown["corpus"]
    _heat(figure, planes[1, 2], real["values"]["blocks"], "Python's help texts: values between topics")
    planes[1, 2].set_xticks(range(len(real["names"])), real["names"], rotation=90, fontsize=8)
    planes[1, 2].set_yticks(range(len(real["names"])), real["names"], fontsize=8)
    planes[1, 2].set_xlabel("topic, by its first word; pairs of different words")
    return figure


def _heat(figure: Any, plane: Any, matrix: Any, title: str) -> None:
    """A matrix in colours that are white at zero."""
    most = float(np.abs(matrix).max())
    picture = plane.imshow(matrix, cmap="RdBu_r", vmin=-most, vmax=most)
    figure.colorbar(picture, ax=plane, shrink=0.8)
    plane.set_title(title, fontsize=10)


CLAIM = Claim(
    row="L10",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
