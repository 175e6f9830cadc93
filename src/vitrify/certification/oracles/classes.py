"""Oracles of classifiers: scenes and hierarchies say what the answer must be, networks say what it is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.checks.points import PointBatch
from vitrify.certification.evidence import Method
from vitrify.certification.oracles.catalogue import oracle
from vitrify.certification.oracles.right import logit_margins, one_of
from vitrify.errors import FolderError
from vitrify.net.conv import Convolutional, image_planes, symbol_planes
from vitrify.spec.geometry.scene import Scene
from vitrify.spec.geometry.scene_files import NONE
from vitrify.spec.geometry.scene_images import draw_images, near_hits, near_misses, scattered
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.grammars.hierarchy import Hierarchy

DRAWN = 256  # images of a scene, or sentences of a hierarchy
EDGE = 64  # images at the edge of presence, and with scattered parts
MISSES = 1024  # near misses at most
MAX_STRINGS = 1 << 14  # all strings are checked if there are no more


class ClassOracle:
    """The right class, or `(none)`; the distance is 0 or 1, and an answer that hardly leads counts as wrong."""

    TIE = 1e-6  # margins up to this are ties

    def __init__(
        self,
        net: Convolutional,
        classify: Callable[[Floats], str],
        ask: Callable[[np.random.Generator], list[PointBatch]],
        show: Callable[[Floats], object],
    ) -> None:
        self.net, self.classify, self.cases, self.show = net, classify, ask, show
        self._known: dict[bytes, int] = {}  # mutants are checked on the same inputs again and again

    def tolerance(self) -> float:
        """Nothing but the right answer."""
        return 0.0

    def expected(self, inputs: Floats) -> Ints:
        """The number of the right answer to each input."""
        classes = []
        for point in inputs:
            key = point.tobytes()
            if key not in self._known:
                self._known[key] = self.net.output.symbols.index(self.classify(point))
            classes.append(self._known[key])
        return np.array(classes, dtype=np.int64)

    def errors(self, inputs: Floats, outputs: Floats) -> Floats:
        """0 where the right answer leads, 1 elsewhere."""
        return np.where(logit_margins(outputs, self.expected(inputs)) > self.TIE, 0.0, 1.0)  # not a number never leads

    def right(self, point: Floats) -> Floats:
        """1 for the right class, 0 for the others."""
        return np.asarray(one_of(self.expected(point[None]), len(self.net.output.symbols))[0])

    def witness(self, point: Floats, output: Floats) -> dict[str, object]:
        """The input, what is right and what came."""
        symbols = self.net.output.symbols
        return {
            "input": self.show(point),
            "expected": self.classify(point),
            "actual": symbols[int(output.argmax())],
            "logits": dict(zip(symbols, output.tolist(), strict=True)),
        }


@oracle(Scene, output="class", reads="image")
def scene_oracle(scene: Scene, net: Convolutional) -> ClassOracle:
    """Images that the scene draws, near misses, and composites that are taken apart."""
    size = (net.planes, net.rows, net.columns)
    if net.output.symbols != (*dict(scene.classes), NONE) or size != (1, *scene.image) or net.pixels == "symbols":
        raise FolderError("the network and its spec do not speak about the same images and classes")

    def ask(rng: np.random.Generator) -> list[PointBatch]:
        drawn, _ = draw_images(scene, DRAWN, int(rng.integers(2**31)))
        bits = net.pixels == "bits"
        groups = {
            "images of all classes": drawn,
            "images with features at the edge of presence": near_hits(scene, rng, 0 if bits else EDGE),
            "images with the parts of composites scattered": scattered(scene, rng, EDGE),
            "images with one wrong pixel": near_misses(scene, rng, MISSES, bits=bits),
        }
        unambiguous = {name: [i for i in images if _has_answer(scene, i)] for name, images in groups.items()}
        return [PointBatch(name, image_planes(net, np.array(images))) for name, images in unambiguous.items() if images]

    return ClassOracle(net, lambda point: scene.reading(point[0]).label or NONE, ask, lambda point: point[0].tolist())


def _has_answer(scene: Scene, image: Floats) -> bool:
    """Return whether an image has a right answer: one class, or none because features are missing."""
    reading = scene.reading(image)
    present = [members for _, members in scene.classes if all(reading.features[member] for member in members)]
    return len(present) < 2


@oracle(Grammar, output="class", reads="image")
def hierarchy_oracle(grammar: Grammar, net: Convolutional) -> ClassOracle:
    """All strings of words if they are few; else sentences in which all rules meet, and the same with a wrong word."""
    tree = Hierarchy.of(grammar)
    reads = (net.symbols, net.rows, net.columns)
    if net.output.symbols != (*tree.classes, NONE) or reads != (tree.words, 1, tree.length) or net.pixels != "symbols":
        raise FolderError("the network and its spec do not speak about the same words and classes")

    def ask(rng: np.random.Generator) -> list[PointBatch]:
        if len(tree.words) ** tree.length <= MAX_STRINGS:
            strings = list(product(tree.words, repeat=tree.length))
            return [PointBatch("strings", symbol_planes(net, strings), Method.EXHAUSTIVE)]
        listed = list(tree.examples(rng))
        drawn = [tree.draw(rng) for _ in range(DRAWN)]
        wrong = [_one_changed(rng, words, tree.words) for words in drawn]
        return [
            PointBatch("random sentences", symbol_planes(net, drawn)),
            PointBatch("sentences with one word changed", symbol_planes(net, wrong)),
            PointBatch("sentences in which all rules meet", symbol_planes(net, listed)),
        ]

    def words(point: Floats) -> list[str]:
        return [tree.words[i] for i in point[:, 0].argmax(axis=0)]

    return ClassOracle(net, lambda point: tree.classify(words(point)) or NONE, ask, words)


def _one_changed(rng: np.random.Generator, words: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    place, word = int(rng.integers(len(words))), str(rng.choice(known))
    return (*words[:place], word, *words[place + 1 :])
