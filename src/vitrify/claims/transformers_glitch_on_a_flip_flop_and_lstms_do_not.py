r"""Transformers that have learned to read a flip-flop's bit go wrong on rarer sequences; LSTMs never do.

Statement: a text writes bits, ignores bits and reads the bit that was written last. Nets are trained on texts that
ignore four times of five, until they are nearly always right there. Where texts are much denser (ignoring once in ten)
or much sparser (49 times in 50), transformers glitch: a share of their reads is wrong, which differs from seed to seed.
An LSTM makes no error on either. Rows from the tails among the training rows mend most of it.

Why: one bit of state is all that a gate needs to keep. A transformer must find the latest write among all: its
attention is trained where writes are ten pairs apart, and nothing there says how it weighs writes that are next to each
other, or a write that is far away against hundreds of ignored bits.

Checked: wrong reads over all reads, for each seed on 0.8 and both tails, on rows that no net was trained on, after the
last step. Two transformers in three must have learned 0.8: at most 0.001 of their reads are wrong, at quick scale 0.05.
Of those, four in five must be wrong ten times as often on the worse tail (where no read of 0.8 was wrong, as often as
if one had been), at quick scale two in three three times as often on the dense tail; and two in three on at least 0.01
of the reads of the dense tail. The LSTM must make no error in at least 10⁵ reads of each tail by all seeds. With a
fifth of the training rows from the tails, the mean rate on the judged tails must fall to less than half. A linear
recurrence with gates (two layers) stands beside them; nothing is asked of it. Sizes were chosen on other seeds, after
an earlier choice with a stricter premise (0.005) and ratio (10) was undecided on the seeds 0 to 9: 2 of 10 had learned.
How large the glitches are depends on the net: with rotary places 4 of 5 that had learned were wrong on at most 0.0025
of the dense reads, and more steps make them rarer.

Source: B. Liu, Ash, Goel, Krishnamurthy and C. Zhang 2023, "Exposing Attention Glitches with Flip-Flop Language
Modeling", arXiv 2306.00946 [A], settings [S]: 6 layers of width 512, 10,000 steps and rows of 512 there. Smaller nets
here, with a learned number per distance at quick scale, where the sparse tail does not show in rows of 64.

Saboteur: transformers that were trained with rows of the tails among the others are called ordinary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided, interval
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.afterwards import afterwards
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.recurrent import RecurrentFamily
from vitrify.learn.models.ssm import StateSpaceFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.sandboxes.flip_flop import DENSE, SPARSE, FlipFlop

USUAL = 0.8  # how likely an instruction ignores, in training
LEARN = 2 / 3  # of the transformers, those that must have learned the task
MENDED = 0.5  # of the rate on a tail, what rows of the tails in training leave at most
READS = 1e5  # of each tail, for an LSTM
TAILS = {"0.8": USUAL, "sparse 0.98": SPARSE, "dense 0.1": DENSE}
Counts = dict[str, dict[str, list[float]]]  # of nets, by test set: wrong reads, reads


@dataclass(frozen=True)
class Nets:
    """A family, how it is trained, and how many rows of 0.8, of the sparse and of the dense tail it is asked."""

    family: Family
    recipe: Recipe
    rows: tuple[int, int, int]
    piece: int = 256


@dataclass(frozen=True)
class Setting:
    """What is trained and judged; `tails` is the part of the rows that mends, for the first `mended` of the seeds.

    `misnamed` swaps who is mended.
    """

    length: int
    transformer: Nets
    lstm: Nets
    recurrence: Nets
    seeds: tuple[int, ...]
    mended: int
    judged: tuple[str, ...]
    learned: float  # the rate of wrong reads of 0.8 at which the task is learned
    times: float  # how many times the rate on 0.8 a rate in a tail is, if it is a glitch rate
    glitch: float  # the least rate on the dense tail
    share: float  # of the seeds that learned the task, those that glitch
    tails: float = 0.2
    misnamed: bool = False


def subjects() -> Iterator[Subject]:
    by_distance = TransformerFamily(layers=2, heads=2, d_model=32, positions="relative", gain=10.0)
    recipe = Recipe(steps=600, batch=16, lr=3e-3, schedule="linear", warmup=50, test_rows=64, marks=0)
    gated = RecurrentFamily(kind="lstm", state=32, d_embed=8)
    linear = StateSpaceFamily(layers=2, d_model=16, state=16)
    setting = Setting(
        length=64,
        transformer=Nets(by_distance, recipe, (512, 512, 256)),
        lstm=Nets(gated, replace(recipe, steps=1000, lr=5e-3), (512, 8192, 1024), piece=1024),
        recurrence=Nets(linear, recipe, (512, 512, 256)),
        seeds=tuple(range(20, 30)),
        mended=5,
        judged=("dense 0.1",),
        learned=0.05,
        times=3.0,
        glitch=0.01,
        share=2 / 3,
    )
    yield Subject("rows of 64", data={"setting": setting})


def paper() -> Iterator[Subject]:
    places = TransformerFamily(layers=4, heads=8, d_model=256)
    recipe = Recipe(
        steps=6000,
        batch=16,
        lr=1e-3,
        weight_decay=0.1,
        beta2=0.999,
        schedule="linear",
        warmup=50,
        test_rows=64,
        marks=0,
        precision="bfloat16",
    )
    brief = replace(recipe, steps=1000, lr=3e-3, weight_decay=0.0, beta2=0.99, precision="float32")
    gated = RecurrentFamily(kind="lstm", state=128, d_embed=64)
    linear = StateSpaceFamily(layers=2, d_model=64, state=64)
    setting = Setting(
        length=512,
        transformer=Nets(places, recipe, (1024, 2048, 512), piece=16),
        lstm=Nets(gated, brief, (4096, 32_768, 4096), piece=256),
        recurrence=Nets(linear, brief, (1024, 2048, 512)),
        seeds=tuple(range(20, 30)),
        mended=5,
        judged=("sparse 0.98", "dense 0.1"),
        learned=0.001,
        times=10.0,
        glitch=0.01,
        share=0.8,
    )
    yield Subject("rows of 512", data={"setting": setting})


def sabotage(subject: Subject) -> Subject:
    return Subject(subject.name, data={"setting": replace(subject.data["setting"], misnamed=True)})


@lru_cache(maxsize=4)
def counted(nets: Nets, length: int, members: tuple[tuple[float, int], ...]) -> Counts:
    """Wrong reads and reads on every test set of members, each with its part of rows from the tails and its seed."""
    sandbox = FlipFlop.ffl(USUAL, length)
    runs = train(nets.family, sandbox, axes={"tails,seed": members}, recipe=nets.recipe)
    found = {}
    for (name, ignore), rows in zip(TAILS.items(), nets.rows, strict=True):
        each = afterwards(nets.family, runs, [FlipFlop.ffl(ignore, length)], rows, nets.piece, apart=True)[0]
        found[name] = {what: [one[what] for one in each] for what in ("wrong", "asked")}
    return found


def part(counts: Counts, chosen: slice) -> Counts:
    """The counts of some members."""
    return {name: {what: values[chosen] for what, values in one.items()} for name, one in counts.items()}


def rates(counts: Counts) -> dict[str, Any]:
    """The share of wrong reads of each seed, by test set."""
    return {name: np.array(one["wrong"]) / np.array(one["asked"]) for name, one in counts.items()}


def check(subject: Subject) -> Evidence:
    setting: Setting = subject.data["setting"]
    seeds = setting.seeds
    alone = tuple((0.0, seed) for seed in seeds)
    helped = tuple((setting.tails, seed) for seed in seeds[: setting.mended])
    both = counted(setting.transformer, setting.length, alone + helped)
    plain, mended = part(both, slice(len(seeds))), part(both, slice(len(seeds), None))
    if setting.misnamed:
        plain, mended = mended, plain
    lstm = counted(setting.lstm, setting.length, alone)
    linear = counted(setting.recurrence, setting.length, alone)
    wrong, repaired = rates(plain), rates(mended)
    usual = np.maximum(wrong["0.8"], 1 / np.array(plain["0.8"]["asked"]))
    able = wrong["0.8"] <= setting.learned
    able = able if able.any() else ~able  # the premise is not met
    ratio = (np.max([wrong[name] for name in setting.judged], axis=0) / usual)[able].tolist()
    dense = wrong["dense 0.1"][able].tolist()
    left = [float(repaired[name].mean() / max(wrong[name].mean(), 1e-12)) for name in setting.judged]
    tails = [name for name in TAILS if name != "0.8"]
    asked = [
        Asked("transformer: wrong reads, 0.8", wrong["0.8"].tolist(), most=setting.learned, share=LEARN, premise=True),
        Asked(
            f"having learned, worst of {', '.join(setting.judged)} over 0.8", ratio, setting.times, share=setting.share
        ),
        Asked("having learned, wrong reads, dense 0.1", dense, setting.glitch, share=2 / 3),
        Asked("transformer: wrong reads, dense 0.1", wrong["dense 0.1"].tolist()),
        Asked("transformer: wrong reads, sparse 0.98", wrong["sparse 0.98"].tolist()),
        *(Asked(f"LSTM: number of wrong reads, {name}", lstm[name]["wrong"], most=0) for name in TAILS),
        *(Asked(f"LSTM: reads of all seeds, {name}", [sum(lstm[name]["asked"])], least=READS) for name in tails),
        Asked("what rows of the tails in training leave of the mean rate", left, most=MENDED),
        *(Asked(f"so mended: wrong reads, {name}", repaired[name].tolist()) for name in TAILS),
        *(Asked(f"linear recurrence: wrong reads, {name}", rates(linear)[name].tolist()) for name in TAILS),
    ]
    groups = {"transformer": plain, "with rows of the tails": mended, "LSTM": lstm, "linear recurrence": linear}
    shown = {name: {"rates": rates(one), "reads": _asked(one)} for name, one in groups.items()}
    recipe = setting.transformer.recipe
    domain = f"{len(seeds)} seeds of each net, {subject.name}, transformers {recipe.steps} steps of {recipe.batch} rows"
    return decided(asked, domain=domain, seed=seeds[0], shown={"nets": shown, "learned": setting.learned})


def _asked(counts: Counts) -> dict[str, float]:
    """Reads of a seed, by test set."""
    return {name: float(np.mean(one["asked"])) for name, one in counts.items()}


def draw(shown: Mapping[str, Any]) -> Any:
    from vitrify.learn.figures import level, sheet

    figure, planes = sheet(
        len(shown),
        len(TAILS),
        "Reading the bit that was written last (bars: mean and 95 % interval; numbers: reads of each seed)",
        width=4.4,
        height=3.8,
    )
    for row, (subject, found) in zip(planes, shown.items(), strict=True):
        for plane, test in zip(row, TAILS, strict=True):
            floor = min(0.3 / net["reads"][test] for net in found["nets"].values())
            for at, net in enumerate(found["nets"].values()):
                _column(plane, at, net["rates"][test], floor, f"C{at}")
                plane.text(at, floor * 0.55, f"{net['reads'][test]:,.0f}", fontsize=7, ha="center", va="top")
            plane.axhspan(floor / 4, floor * 1.5, color="0.92", linewidth=0, zorder=0)
            plane.text(0.01, floor * 1.55, "none wrong", transform=plane.get_yaxis_transform(), fontsize=8)
            if test == "0.8":
                level(plane, found["learned"], f"learned: {found['learned']:g}", at=0.99)
            level(plane, 0.5, "guessing", at=0.99)
            plane.set(yscale="log", ylim=(floor / 4, 1), xlim=(-0.6, 3.6), title=f"{subject}, ignoring: {test}")
            plane.set_xticks(range(len(found["nets"])), [_folded(name) for name in found["nets"]], fontsize=8)
        row[0].set_ylabel("wrong reads over reads, a dot per seed")
    return figure


def _column(plane: Any, at: int, values: Sequence[float], floor: float, colour: str) -> None:
    """The rates of all seeds as dots, their mean with its 95 % interval beside them."""
    numbers = np.array(values)
    spread = at + np.linspace(-0.22, 0.22, len(numbers))
    plane.scatter(spread, np.maximum(numbers, floor), s=18, color=colour, alpha=0.8, linewidth=0)
    if numbers.any():
        low, high = np.maximum(interval(values), floor)
        plane.plot([at + 0.33] * 2, [low, high], color=colour, linewidth=1.5)
        plane.plot([at + 0.33], [numbers.mean()], marker="_", color=colour, markersize=9)


def _folded(name: str) -> str:
    return name.replace(" ", "\n", 1)


CLAIM = Claim(
    row="G3",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
