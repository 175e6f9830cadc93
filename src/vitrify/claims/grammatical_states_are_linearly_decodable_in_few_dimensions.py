r"""From the layer that writes it onward, a phrase's label is linearly decodable at its last word, in few dimensions.

Statement: In the transformers built from a Random Hierarchy Model, the residual stream at the last word of a phrase of
level $h$ holds its label in a subspace of one dimension per label or, in another construction, of two dimensions in all
(points on the unit circle). A linear map reads the label without error, with margin 1, or $1 - \cos(2\pi/N)$ for $N$
labels on a circle. If every pair of symbols is some rule's right side, linear probes make errors before the MLP that
writes the label.
Why: Labels are orthogonal unit vectors or points in convex position. The label is a function of the two labels below,
which is not linear in them.
Checked: Three nets (a grammar with 5 symbols under softmax, one with 4 under hard attention and under sparsemax, all of
two levels) at every phrase of 160 random sentences: the margin in the named subspace; and after each attention or MLP
the share of phrases of unseen sentences that linear probes read, with margin and number of dimensions. Controls:
shuffled labels, and the last word alone.
Not checked: Deeper models, other grammars, and trained networks. The source's bound on the number of dimensions is not
reproduced. That probes fail before the writing layer is measured, not proved.
Source: Nandakumar et al. 2026, arXiv 2606.17522 [A]; codes and probes are our own.
Saboteur: The units that write the labels of level 1 are removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.arrays import Arrays, Bools, Ints
from vitrify.certification.reading.probes import by_layer, held_out, streams
from vitrify.claims._figures import Panel, show
from vitrify.claims._nets import Claim, Domain, Evidence, Method, Quantity, Subject, Subjects, Weights, zeroed
from vitrify.constructions.catalogue import build
from vitrify.net.inference import batch_of, encode
from vitrify.net.spaces import Circle, MultiHot
from vitrify.spec.grammars.families import random_hierarchy
from vitrify.spec.grammars.grammar import END, Grammar

SENTENCES = 160
DIGITS = 9  # to which margins are compared


def subjects() -> Subjects:
    five, four = (random_hierarchy(n, n, 2, 2, seed=1, classes=n) for n in (5, 4))
    yield Subject("plane, softmax", five, build(five, "plane"))
    yield Subject("unambiguous, hard", four, build(four, "unambiguous", attention="hard"))
    yield Subject("shapes, sparsemax", four, build(four, "shapes", attention="sparsemax"))


@dataclass(frozen=True)
class LevelPhrases:
    """The phrases of one level in all sentences: the sentence of each, its last position, its label."""

    sentence: Ints
    end: Ints
    label: Ints
    names: tuple[str, ...]


def phrases(grammar: Grammar, sentences: list[tuple[str, ...]], level: int) -> LevelPhrases:
    """Every phrase of a level of a grammar with one shape and one label per phrase."""
    shapes = grammar.leveled().with_end().shapes()
    nodes = shapes.nodes(0)[level][:-1]  # the last one is the end of the sentence
    ends = []
    for number, sentence in enumerate(sentences):
        labels = shapes.labels(0, (*sentence, END))[level]
        for node, own in zip(nodes, labels, strict=False):
            (label,) = own
            ends.append((number, node.last, label))
    sentence_of, end, label_of = np.array(ends).T
    kinds, places = np.unique(label_of, return_inverse=True)
    return LevelPhrases(sentence_of, end, places, tuple(shapes.levels.symbols[level][kind] for kind in kinds.tolist()))


def check(subject: Subject) -> Evidence:
    grammar, weights = subject.spec, subject.weights
    every = grammar.sentences()
    sentences = [every[i] for i in np.random.default_rng(0).permutation(len(every))[:SENTENCES]]
    tokens, _ = batch_of(weights.architecture, [encode(weights.architecture, s) for s in sentences])
    layers = streams(weights, tokens)
    train = np.arange(len(sentences)) % 2 == 0
    levels = {level: phrases(grammar, sentences, level) for level in (1, 2)}
    criteria = [
        each
        for level, own in levels.items()
        for each in _level(weights, layers, tokens, own, train[own.sentence], level)
    ]
    cases = sum(len(own.label) for own in levels.values())
    domain = Domain(
        "phrases, half of them to fit probes", Method.SAMPLED, cases, settings={"sentences": len(sentences)}
    )
    declared_first = sorted(criteria, key=lambda each: each.relation is None)
    return Evidence("holds", cases, (domain,), seed=0).adding(*declared_first)


def _level(
    weights: Weights, layers: Arrays, tokens: Ints, own: LevelPhrases, train: Bools, level: int
) -> list[Quantity]:
    """Return the criteria on the labels of one level."""
    space = weights.labels.space(f"complete {level}.0")
    kind, kinds = space.kind, len(own.names)
    assert isinstance(kind, Circle | MultiHot)
    size, least = (2, 1 - float(np.cos(2 * np.pi / kinds))) if isinstance(kind, Circle) else (kinds, 1.0)
    names = list(layers)
    written = min(label.born for label in weights.labels.spaces if label.name.startswith(f"complete {level}.0"))
    vectors = {name: layers[name][own.sentence, own.end] for name in names}
    probes = by_layer(vectors, own.label, train)
    codes = kind.codes if isinstance(kind, Circle) else np.eye(kinds)
    codes = codes[[kind.values.index(name) for name in own.names]]
    held = vectors[names[space.born]][:, list(space.dims)] @ codes.T
    mine = np.eye(kinds, dtype=bool)[own.label]
    margin = np.where(mine, held, -np.inf).max(axis=1) - np.where(mine, -np.inf, held).max(axis=1)
    words = np.eye(len(weights.architecture.inputs))[tokens[own.sentence, own.end]]
    later, before = ([probes[name].separated for name in some] for some in (names[written:], names[:written]))
    by_name = {name: {key: round(value, 4) for key, value in vars(probe).items()} for name, probe in probes.items()}
    return [
        Quantity(f"level {level}: dimensions of its space", len(space.dims), size, "="),
        Quantity(
            f"level {level}: least margin over another label",
            round(float(margin.min()), DIGITS),
            round(least, DIGITS),
            "=",
        ),
        Quantity(f"level {level}: least share separated from {names[written]} on", min(later), 1.0, "="),
        Quantity(f"level {level}: readable before", max(before) == 1.0, False, "="),
        Quantity(f"level {level}: labels", kinds),
        Quantity(f"level {level}: accuracy of the last word alone", held_out(words, own.label, train)),
        Quantity(f"level {level}: by layer", by_name),
    ]


def sabotage(subject: Subject) -> Subject:
    """The units that write the labels of level 1, as bits or as counts, are cut."""
    for units in subject.weights.labels.units:
        if any(name.startswith("complete 1.") for name in units.writes):
            subject = zeroed(subject, f"blocks.{units.block}.mlp.W_out", slice(units.start, units.stop))
    return subject


def probes(level: int) -> Panel:
    """Return the panel with the share of phrases that a linear probe separates, by part of the net."""

    def show_level(axes: Any, evidence: Evidence) -> None:
        for number, (name, part) in enumerate(evidence.parts.items()):
            found = part.measured(f"level {level}: by layer") or {}
            shares = [each["separated"] for each in found.values()]
            axes.plot(range(len(found)), shares, color=f"C{number}", marker="o", label=name)
            if len(found) > len(axes.get_xticklabels()) or not number:
                axes.set_xticks(range(len(found)), list(found), rotation=30, ha="right", fontsize=7)
        axes.set(ylim=(-0.02, 1.05), ylabel="share separated by a linear probe", title=f"labels of level {level}")
        axes.legend(fontsize=8)

    return show_level


FIGURE = show(probes(1), probes(2))
CLAIM = Claim(
    subjects, check, sabotage, id="R3", standing="theorem", certified="exhaustive", budget_seconds=20, figure=FIGURE
)
