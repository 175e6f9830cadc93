r"""Transformers carry a task to longer words if a short program for all lengths computes it, and parity not.

Statement: trained on words of up to $n$ letters, transformers answer words of up to $4n$ letters of tasks that a
counting program of constant length computes (majority, the most frequent letter; at paper scale sorting and copying of
different letters too). Where every known program grows with the words (parity; at paper scale sums modulo 3 and copies
with repeats too), they learn the words up to $n$ and err on those up to $2n$. An LSTM learns parity at all lengths.
Why: what the layers of a transformer learn are looks and counts that mean the same in longer words. Parity can be had
from these only by a list of all odd numbers, and a list that training wrote ends where training ended. A recurrent
state needs one bit and turns it with every one.
Checked: every program is a value of this package: its length is counted, for words up to $n$ and $4n$, and it is run
against the task's own answers. It may neither divide nor look at computed places, as in C-RASP and RASP-L. Over seeds,
the share of words without a mistake in $(n, 2n]$ and $(2n, 4n]$, by length; that training was learnt is a premise.
Learned places start anywhere in the table of places. Other ways to tell places are shown, and not judged.
Source: Zhou et al. 2023, arXiv 2310.16028 [A]; Huang et al. 2024, arXiv 2410.02140 [A], whose protocol for places and
numbers of ones is used at smaller sizes; Yang and Chiang 2024, arXiv 2404.04393 [A].
Saboteur: programs may divide, so that parity has a short program too and should generalise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims._lengths import TIMES, Trial, between, length, trained, wrong
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.models.recurrent import RecurrentFamily
from vitrify.learn.models.transformer import Positions, TransformerFamily
from vitrify.learn.recipe import Recipe

FITTED = 0.9  # of the words of training's lengths are right: less is no basis for a judgement
KEPT = 0.95  # of the words of twice the length, where a program of constant length exists
MAJORITY = 0.97  # of the words of four times the length
LOST = 0.72  # of the words of twice the length at most, where none is known
FALL = 0.15  # between training's lengths and twice these, at least
RECURRENT = 0.99  # of the words of twice the length are right for an LSTM
MOST = 7 / 8  # of the seeds must agree
FEW = 5  # seeds of what is shown only
LINES = (KEPT, "asked for, up to 2×"), (LOST, "transformers: at most, up to 2×"), (KEPT, "asked of learned places")


@dataclass(frozen=True)
class Setting:
    """What is trained and judged; `others` are trained and shown only; `free` programs may divide."""

    trials: tuple[Trial, ...]
    others: tuple[Trial, ...]
    seeds: tuple[int, ...] = tuple(range(8))
    free: bool = False


def _other(trial: Trial, steps: int, *codes: Positions) -> tuple[Trial, ...]:
    """The same with other ways to tell places."""
    family, recipe = trial.family, replace(trial.recipe, steps=steps)
    assert isinstance(family, TransformerFamily)
    return tuple(replace(trial, family=replace(family, positions=code), recipe=recipe) for code in codes)


def subjects() -> Iterator[Subject]:
    """Words of up to 8 letters."""
    counts = Recipe(steps=500, batch=64, lr=4e-3, schedule="linear", warmup=50)
    shallow = TransformerFamily(layers=1, heads=2, d_model=32)
    deep = TransformerFamily(layers=2, heads=4, d_model=64)
    lstm = RecurrentFamily(state=32, d_embed=16)
    majority = Trial("majority", 8, shallow, counts)
    trials = (
        majority,
        Trial("most frequent", 8, shallow, counts),
        Trial("parity", 6, deep, replace(counts, steps=1000, lr=2e-3, warmup=100)),
        Trial("parity", 8, lstm, replace(counts, steps=400, lr=1e-2)),
    )
    yield Subject("short words", data={"setting": Setting(trials, _other(majority, 300, "none", "rotary"))})


def paper() -> Iterator[Subject]:
    """Words of up to 10 to 32 letters, and all tasks."""
    counts = Recipe(steps=3000, batch=128, lr=2e-3, schedule="linear", warmup=200)
    written = replace(counts, steps=5000, lr=3e-3)
    listed = replace(counts, steps=8000, lr=5e-4)
    shallow = TransformerFamily(layers=1, heads=4, d_model=64)
    middle = TransformerFamily(layers=2, heads=4, d_model=64)
    deep = TransformerFamily(layers=4, heads=4, d_model=128)
    lstm = RecurrentFamily(state=64, d_embed=32)
    majority = Trial("majority", 32, shallow, counts)
    copying = Trial("copy different letters", 12, middle, written)
    trials = (
        majority,
        Trial("most frequent", 32, shallow, counts),
        Trial("sort", 24, middle, replace(written, lr=1e-3)),
        copying,
        Trial("copy repeated letters", 12, middle, written),
        Trial("sum modulo 3", 10, deep, listed),
        Trial("parity", 12, deep, listed),
        Trial("parity", 16, lstm, replace(counts, steps=2000, lr=5e-3)),
    )
    others = (*_other(majority, 2000, "none", "rotary", "alibi"), *_other(copying, 5000, "relative"))
    yield Subject("longer words", data={"setting": Setting(trials, others)})


def sabotage(subject: Subject) -> Subject:
    """Programs that divide."""
    return Subject(subject.name, data={"setting": replace(subject.data["setting"], free=True)})


def check(subject: Subject) -> Evidence:
    """Run the programs, train the networks, and compare."""
    setting: Setting = subject.data["setting"]
    asked: list[Asked] = []
    kept: list[list[float]] = []
    lost: list[list[float]] = []
    shown: dict[str, Any] = {"trials": [], "others": []}
    for trial in setting.trials:
        n = trial.longest
        short, long = (length(trial.text(most, setting.free)) for most in (n, TIMES * n))
        root = trial.text(TIMES * n, setting.free)
        mistakes = [wrong(trial, root, at) for at in (1, n, 2 * n, TIMES * n)]
        shares = trained(trial, setting.seeds)
        fit, twice, far = between(shares, 1, n), between(shares, n + 1, 2 * n), between(shares, 2 * n + 1, TIMES * n)
        name = trial.name
        asked += [
            Asked(f"{name}: words on which the program errs", mistakes, most=0),
            Asked(f"{name}: right in 1×", fit, least=FITTED, share=MOST, premise=True),
        ]
        if not trial.usual:
            asked.append(Asked(f"{name}: right in 2×", twice, least=RECURRENT, share=MOST))
        elif short == long:
            asked.append(Asked(f"{name}: right in 2×", twice, least=KEPT, share=MOST))
            asked += [Asked(f"{name}: right in 4×", far, least=MAJORITY, share=MOST)] if name == "majority" else []
            kept.append(twice)
        else:
            asked.append(Asked(f"{name}: right in 2×", twice, most=LOST, share=MOST))
            falls = np.subtract(fit, twice).tolist()
            asked.append(Asked(f"{name}: right in 1×, less those in 2×", falls, least=FALL, share=MOST))
            lost.append(twice)
        shown["trials"].append(_shown(trial, shares) | {"program": [short, long], "usual": trial.usual})
    if kept and lost:
        apart = (np.min(kept, axis=0) - np.max(lost, axis=0)).tolist()
        asked.append(Asked("right in 2×: the least with a short program, less the most without", apart, least=0))
    shown["others"] = [_shown(trial, trained(trial, setting.seeds[:FEW])) for trial in setting.others]
    notes = [f"{one['name']}: program of {one['program'][0]} to {one['program'][1]} parts" for one in shown["trials"]]
    notes += [_told(one) for one in shown["others"]]
    longest = ", ".join(f"{trial.name} up to {trial.longest}" for trial in setting.trials)
    where = f"{len(setting.seeds)} seeds each; trained on words of: {longest}; asked about up to {TIMES} times as long"
    return decided(asked, domain=where, seed=setting.seeds[0], shown=shown, notes=notes)


def _shown(trial: Trial, shares: Any) -> dict[str, Any]:
    """A trial's curves, three digits of each."""
    return {"name": trial.name, "kind": trial.kind, "n": trial.longest, "right": np.round(shares, 3)}


def _told(one: Mapping[str, Any]) -> str:
    """What became of a trial that is not judged."""
    n = one["n"]
    ends = ((1, n), (n + 1, 2 * n), (2 * n + 1, TIMES * n))
    means = [float(np.mean(between(one["right"], *both))) for both in ends]
    return f"{one['name']}: right in 1×, 2×, 4×: {', '.join(f'{mean:.3f}' for mean in means)}"


def draw(shown: Mapping[str, Any]) -> Any:
    """The share of right words by their length, for every task with the length of its program; other codes."""
    from vitrify.learn.figures import band, sheet

    (found,) = shown.values()
    figure, planes = sheet(1, 3 if found["others"] else 2, "Trained on short words, asked about longer ones", 5.6, 5.4)
    titles = ("a program of constant length", "programs grow with the words")
    for plane, title in zip(planes[0], titles, strict=False):
        plane.set_title(title)
    for number, one in enumerate(found["trials"]):
        right = np.array(one["right"], dtype=float)
        short, long = one["program"]
        size = f"{short}" if short == long else f"{short} → {long}"
        label = f"{one['name']} (program: {size} parts; {len(right)} seeds)"
        band(
            planes[0, int(short != long)],
            _times(one),
            right,
            label,
            f"C{number}",
            linestyle="-" if one["usual"] else "--",
        )
    for number, one in enumerate(found["others"]):
        band(planes[0, 2], _times(one), np.array(one["right"], dtype=float), one["name"], f"C{number}")
    for plane, (bound, name) in zip(planes[0], LINES, strict=False):
        plane.axhline(bound, color="black", linestyle=":", linewidth=1, label=name)
        plane.axvspan(0, 1, color="grey", alpha=0.15, linewidth=0, label="lengths of training")
        plane.set(xlabel="length of the word, over the longest of training", ylabel="words without a mistake (share)")
        plane.set(xlim=(0, TIMES), ylim=(0, 1.04))
        plane.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    if found["others"]:
        planes[0, 2].set_title("other ways to tell places (not judged)")
    return figure


def _times(one: Mapping[str, Any]) -> Any:
    return np.arange(1, len(one["right"][0]) + 1) / one["n"]


CLAIM = Claim(
    row="G1",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
