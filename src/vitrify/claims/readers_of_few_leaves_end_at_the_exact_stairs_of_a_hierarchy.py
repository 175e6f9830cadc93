r"""Readers of the last $s^l - 1$ leaves of a random hierarchy end at its exact stair $l$, the built net at the last.

Statement: a Random Hierarchy Model ($v$ symbols, $m$ productions each of $s$ symbols, $L$ levels) asks for its last
leaf. Stair $l$ of its grammar is the loss of the best reader of the last $s^l - 1$ leaves. Convolutional nets and
transformers that are told no more than these leaves, with fresh rows in every step, end within 3 % of the stair; told
one leaf less, convolutional nets end at the exact loss of that, which is another. A transformer that is asked for every
next leaf ends within 3 % of the exact losses, in the mean over leaves. The transformer that is built for the grammar as
its Bayes predictor has the loss of the last stair.
Why: nobody with a limited view can do better than the best reader of that view. The leaves below a node tell its symbol
and nothing else about the last leaf, so the best reader needs only the symbols of the left siblings, which a net finds
level by level.
Checked: stairs are exact sums over the beliefs of a reader, for each of 8 drawn grammars. A loss is the exact one plus
the mean divergence of what is said from the exact conditional distribution on test rows, after the last step; so
chance in the answers of these rows plays no part. Losses of 7 of 8 grammars must lie within 3 % of the stair, for every
net and level that it is trained for: convolutional nets for all, transformers for the first two at quick size and for
the second and the third at paper size. A curve over the number of training rows can't be judged like that: it has no
flat part at a stair. Of every next leaf only the mean is judged, as late leaves have small losses and are learned last;
all are shown. The loss of the built net is compared with that of exact fractions, row by row and for every leaf: at the
last leaf the worst row must differ by at most $10^{-6}$ of the stair.
Source: Cagnetta and Wyart 2024, arXiv 2406.00048 [S] for the stairs; Cagnetta, Favero, Sclocchi and Wyart 2025, arXiv
2505.07070 [A] for the two architectures; the limited views and the exact sums are ours.
Saboteur: readers of the second stair are told one leaf less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims._readers import Reader, built_distance, every_leaf, told_losses
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.models.hierarchical import HierarchicalFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.hierarchy import Hierarchy

NEAR = 0.03  # of a stair
SAME = 1e-6  # of a stair: the built net
MOST_SEEDS = 7 / 8
LESS = 2  # the level whose readers may be told one leaf less


@dataclass(frozen=True)
class Readers:
    """The grammars, nets that are told the last leaves, and a net that is asked for every next leaf of `levels` levels.

    The readers of level `LESS` are told `missing` leaves less.
    """

    box: Hierarchy
    nets: tuple[tuple[str, Reader], ...]
    next: Reader | None = None
    levels: int = 0
    rows: int = 16  # for the built net
    seeds: tuple[int, ...] = tuple(range(8))
    missing: int = 0

    def judged(self, reader: Reader) -> dict[int, int]:
        """How many leaves the readers of each stair are told, by level."""
        found = {level: int(self.box.s**level) - 1 for level in range(1, self.box.L + 1)}
        if found[LESS] - self.missing in reader.windows:
            found[LESS] -= self.missing
        return {level: window for level, window in found.items() if window in reader.windows}


def _box(v: int, m: int, L: int) -> Hierarchy:
    return Hierarchy(v=v, m=m, L=L, mode="last", grammars=8, levels=False)


def subjects() -> Iterator[Subject]:
    """Six symbols, three levels."""
    recipe = Recipe(steps=1200, batch=128, lr=1e-2, schedule="cosine", test_rows=1024, marks=0)
    slower = replace(recipe, steps=900, batch=64, lr=3e-3, warmup=100)
    transformer = TransformerFamily(layers=2, heads=2, d_model=32, units=64)
    readers = Readers(
        _box(6, 3, 3),
        (
            ("convolution", Reader(HierarchicalFamily(channels=64), recipe, (1, 2, 3, 7))),
            ("transformer", Reader(transformer, slower, (1, 3))),
        ),
        Reader(transformer, slower),
        levels=2,
    )
    yield Subject("v = 6, m = 3, L = 3", data={"readers": readers})


def paper() -> Iterator[Subject]:
    """The size of the papers, 16 symbols and four levels; and a smaller one, whose every leaf is asked for too."""
    recipe = Recipe(steps=4000, batch=512, lr=1e-2, schedule="cosine", warmup=200, test_rows=4096, marks=0)
    slower = replace(
        recipe, steps=8000, batch=256, lr=7e-4, weight_decay=0.1, beta2=0.98, warmup=500, precision="bfloat16"
    )
    convolution = HierarchicalFamily(channels=128)
    large = Readers(
        _box(16, 4, 4),
        (
            ("convolution", Reader(convolution, recipe, (1, 2, 3, 7, 15))),
            ("transformer", Reader(TransformerFamily(layers=3, heads=8, d_model=256), slower, (3, 7))),
        ),
    )
    yield Subject("v = 16, m = 4, L = 4", data={"readers": large})
    small = Readers(
        _box(12, 3, 3),
        (("convolution", Reader(convolution, replace(recipe, steps=2000), (1, 2, 3, 7))),),
        Reader(TransformerFamily(layers=3, heads=8, d_model=128), replace(slower, steps=3000, lr=1e-3)),
        levels=3,
    )
    yield Subject("v = 12, m = 3, L = 3", data={"readers": small})


def check(subject: Subject) -> Evidence:
    """Losses over stairs, of nets and levels; of every leaf; of the built nets."""
    readers: Readers = subject.data["readers"]
    box, seeds = readers.box, readers.seeds
    stair = np.array([replace(box, grammar=g).plateaus() for g in range(len(seeds))])  # [member, level]
    asked: list[Asked] = []
    shown: dict[str, Any] = {"stairs": stair, "nets": {}}
    for name, reader in readers.nets:
        losses, judged = told_losses(reader, box, seeds), readers.judged(reader)
        for window, (exact, learned) in losses.items():
            what = f"{name}, told {window} of the leaves"
            stood = [level for level in judged if judged[level] == window]
            asked += [_near(f"{what}: loss over stair {level}", learned / stair[:, level]) for level in stood]
            if not stood:
                asked.append(_near(f"{what}: loss over the exact one", learned / exact))
        shown["nets"][name] = {str(window): both for window, both in losses.items()}
    if readers.next:
        exact, learned = every_leaf(readers.next, replace(box, L=readers.levels), seeds)  # [member, leaf]
        asked.append(
            _near("transformer, every next leaf: mean loss over the exact one", learned.mean(1) / exact.mean(1))
        )
        shown["next"] = {"exact": exact, "learned": learned}
    far = built_distance(box, len(seeds), readers.rows)  # [member, leaf]
    asked.append(Asked("built net: distance from the last stair", (far[:, -1] / stair[:, -1]).tolist(), most=SAME))
    asked.append(Asked("built net: distance from the exact loss, worst leaf", far.max(axis=1).tolist(), most=SAME))
    return decided(
        asked,
        domain=f"{len(seeds)} grammars, {subject.name}; "
        + "; ".join(f"{name}: {_rows(one)}" for name, one in readers.nets),
        seed=seeds[0],
        shown=shown,
        notes=_notes(shown),
    )


def _near(name: str, ratios: Any) -> Asked:
    return Asked(name, ratios.tolist(), least=1 - NEAR, most=1 + NEAR, share=MOST_SEEDS)


def _rows(reader: Reader) -> str:
    return f"{reader.recipe.steps} steps of {reader.recipe.batch} rows"


def _notes(shown: Mapping[str, Any]) -> list[str]:
    """The mean distance from the exact losses, in words."""
    told = []
    for name, losses in shown["nets"].items():
        parts = [f"{window}: {100 * (np.mean(both[1] / both[0]) - 1):+.2f} %" for window, both in losses.items()]
        told.append(f"{name}, distance from the exact loss by leaves told: {', '.join(parts)}")
    if "next" in shown:
        leaves = shown["next"]["learned"].mean(axis=0) / shown["next"]["exact"].mean(axis=0) - 1
        told.append(f"every next leaf, distance by leaf: {', '.join(f'{100 * each:+.1f}' for each in leaves)} %")
    return told


def sabotage(subject: Subject) -> Subject:
    """The readers of the second stair are told one leaf less."""
    readers: Readers = subject.data["readers"]
    return Subject(f"{subject.name}, a leaf less", data={"readers": replace(readers, missing=1)})


def draw(shown: Mapping[str, Any]) -> Any:
    """Losses with the stairs, their distance from the exact ones, and the loss at every next leaf."""
    from vitrify.learn.figures import band, level, sheet

    figure, planes = sheet(len(shown), 3, "Readers of a random hierarchy: exact and learned losses", 5.2, 4.0)
    styles = {"convolution": ("C1", "o", -0.12), "transformer": ("C0", "s", 0.12)}
    for (subject, found), (stairs, far, leaves) in zip(shown.items(), planes, strict=True):
        told = sorted({int(window) for losses in found["nets"].values() for window in losses})
        mean = np.mean(found["stairs"], axis=0)
        for number, value in enumerate(mean):
            built = ", built net" if number + 1 == len(mean) else ""
            level(stairs, value, f"stair {number}{built}: {value:.3f} in the mean", at=0.99 if number == 1 else 0.01)
        for name, losses in found["nets"].items():
            colour, marker, shift = styles[name]
            for window, (exact, learned) in losses.items():
                across = told.index(int(window)) + shift + np.linspace(-0.08, 0.08, len(exact))
                stairs.plot(across, exact, "_", color="black", markersize=7)
                stairs.plot(across, learned, marker, color=colour, markersize=4, alpha=0.7)
                over = 100 * (np.array(learned) / np.array(exact) - 1)
                far.plot(across, over, marker, color=colour, markersize=4, alpha=0.7)
            far.plot([], [], marker, color=colour, label=f"{name}, each grammar")
            stairs.plot([], [], marker, color=colour, label=f"{name}, each grammar")
        stairs.plot([], [], "_", color="black", label="exact for that many leaves")
        far.axhspan(-100 * NEAR, 100 * NEAR, color="grey", alpha=0.15, linewidth=0, label=f"within {NEAR:.0%}")
        for plane in (stairs, far):
            plane.set(xlabel="leaves that are told", xticks=range(len(told)), xticklabels=told)
            plane.legend(fontsize=8, loc="upper right" if plane is stairs else "lower left")
        stairs.set(ylabel="loss at the last leaf (nats)", yscale="log", title=subject)
        far.set(ylabel="over the exact loss (%)", title="distance from the exact loss", ylim=(-4, None))
        if "next" not in found:
            leaves.set_axis_off()
            continue
        exact, learned = (np.array(found["next"][which]) for which in ("exact", "learned"))
        places = list(range(1, exact.shape[1] + 1))
        band(leaves, places, learned, "transformer, 10 to 90 % of grammars", "C0", marker="s", ms=4)
        leaves.plot(places, exact.mean(axis=0), "_", color="black", markersize=12, label="exact, mean of grammars")
        over = 100 * (learned.mean(axis=0) / exact.mean(axis=0) - 1)
        for at, height, each in zip(places, learned.mean(axis=0), over, strict=True):
            leaves.annotate(f"{each:+.1f} %", (at, height), (0, 8), textcoords="offset points", fontsize=7, ha="center")
        leaves.set(
            xlabel="leaf",
            ylabel="loss (nats)",
            title=f"every next leaf of {len(places)}",
            xticks=places,
            ylim=(0, None),
        )
        leaves.legend(fontsize=8)
    return figure


CLAIM = Claim(
    row="L13",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
